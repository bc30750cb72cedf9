export * from './api/index.ts';
export { type LeaseHandler, LeaseKeeper, type LeaseKeeperOptions } from './leases/lease-keeper.ts';
export { ManifestSource, type ManifestSourceOptions } from './manifests/manifest-source.ts';
export { API_VERSIONS, type Decoded, decodeObject } from './objects/decode.ts';
export { type FieldPath, type FieldProblem, formatFieldPath } from './objects/field-reader.ts';
export {
  HEADLESS_LABEL,
  IPVS_SCHEDULER_ANNOTATION,
  SERVICE_NAME_LABEL,
  SERVICE_PROXY_NAME_LABEL,
  TRIGGER_TIME_ANNOTATION,
  ZONE_LABEL,
} from './objects/known-names.ts';
export { HEADLESS_CLUSTER_IP, isSelected, serviceOfSlice } from './objects/selectors.ts';
export * from './objects/types.ts';
export type { ObjectEvent, ObjectHandler, ObjectSource, SourceProblem } from './source.ts';
export { ObjectStore, type Touched } from './store.ts';
