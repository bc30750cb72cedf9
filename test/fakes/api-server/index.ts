export type { ApiObject } from './api-object.ts';
export { FakeApiServer, type FakeApiServerOptions } from './fake-api-server.ts';
export type { Answer, Misbehaviour, PolicyRule } from './misbehaviour.ts';
export { ObjectRecorder } from './object-recorder.ts';
export type { RequestRecord } from './request.ts';
export * from './sample-objects.ts';
export { type Journey, UnreliableApi } from './unreliable-api.ts';
export type { Watch } from './watch.ts';
export { JSON_FORMAT, PROTOBUF_FORMAT, type Speaks, type WireFormat } from './wire-format.ts';
