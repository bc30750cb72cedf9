export * from './api/index.ts';
export { API_VERSIONS, type Decoded, decodeObject } from './decode.ts';
export { type FieldPath, type FieldProblem, formatFieldPath } from './field-reader.ts';
export { ManifestSource, type ManifestSourceOptions } from './manifest-source.ts';
export {
  HEADLESS_CLUSTER_IP,
  HEADLESS_LABEL,
  isSelected,
  SERVICE_PROXY_NAME_LABEL,
  serviceOfSlice,
} from './selectors.ts';
export type { ObjectEvent, ObjectHandler, ObjectSource, SourceProblem } from './source.ts';
export { ObjectStore, type Touched } from './store.ts';
export * from './types.ts';
