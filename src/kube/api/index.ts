export { ApiSource, type ApiSourceOptions } from './api-source.ts';
export { type ApiClient, type ApiRequest, type ApiResponse, ApiStatusError } from './client/api-client.ts';
export type { NewObject, ObjectName, ObjectResource, ObjectTarget, StoredObject } from './client/api-object.ts';
export { backOffMs } from './client/back-off.ts';
export { createApiClient } from './client/http-client.ts';
export { ObjectClient, type ObjectClientOptions } from './client/object-client.ts';
export { isRefused, ObjectError, type ObjectOperation, type RefusalKind } from './client/object-error.ts';
export type { ApiObservation, ApiObserver } from './client/observation.ts';
export { EventRecorder } from './event-recorder.ts';
