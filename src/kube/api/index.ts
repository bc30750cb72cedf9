export { ApiSource, type ApiSourceOptions } from './api-source.ts';
export { type ApiClient, type ApiRequest, type ApiResponse, ApiStatusError, isStatus } from './client/api-client.ts';
export { type ApiClientOptions, createApiClient } from './client/http-client.ts';
export type { ApiObservation, ApiObserver } from './client/observation.ts';
export { EventRecorder, type EventRecorderOptions, type EventSubject, type RecordedEvent } from './event-recorder.ts';
