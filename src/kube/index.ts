export * from './api/index.ts';
export { API_VERSIONS, type Decoded, decodeObject } from './decode.ts';
export { type FieldPath, type FieldProblem, formatFieldPath } from './field-reader.ts';
export {
  HEADLESS_LABEL,
  IPVS_SCHEDULER_ANNOTATION,
  SERVICE_NAME_LABEL,
  SERVICE_PROXY_NAME_LABEL,
  TRIGGER_TIME_ANNOTATION,
  ZONE_LABEL,
} from './known-names.ts';
export { ManifestSource, type ManifestSourceOptions } from './manifest-source.ts';
export { HEADLESS_CLUSTER_IP, isSelected, serviceOfSlice } from './selectors.ts';
export type { ObjectEvent, ObjectHandler, ObjectSource, SourceProblem } from './source.ts';
export { ObjectStore, type Touched } from './store.ts';
export * from './types.ts';
