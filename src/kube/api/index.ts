export { type ApiClient, type ApiRequest, type ApiResponse, ApiStatusError, isStatus } from './api-client.ts';
export { ApiSource, type ApiSourceOptions } from './api-source.ts';
export { EventRecorder, type EventRecorderOptions, type EventSubject, type RecordedEvent } from './event-recorder.ts';
export { type ApiClientOptions, createApiClient } from './http-client.ts';
export type { ApiObservation, ApiObserver } from './observation.ts';
