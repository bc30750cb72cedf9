export * from './api/index.ts';
export { ManifestSource } from './manifests/manifest-source.ts';
export {
  type AnnouncerEvent,
  NODE_STATUS,
  NodeAnnouncer,
  type WantedAnnotations,
  type WantedCondition,
} from './nodes/node-announcer.ts';
export { decodeObject, type ObjectKind } from './objects/kind.ts';
export { KINDS } from './objects/kinds.ts';
export {
  FLANNEL_ANNOTATIONS,
  FORMER_POD_CIDRS_ANNOTATION,
  HEADLESS_LABEL,
  IPVS_SCHEDULER_ANNOTATION,
  MIGRATION_ANNOTATION,
  NETWORK_UNAVAILABLE,
  OUR_FLANNEL_ANNOTATION,
  PROXY_MODE_ANNOTATION,
  SERVICE_NAME_LABEL,
  SERVICE_PROXY_NAME_LABEL,
  TRIGGER_TIME_ANNOTATION,
  WIREGUARD_ANNOTATIONS,
  ZONE_LABEL,
} from './objects/known-names.ts';
export {
  createdAtOf,
  internalIpOf,
  internalIpsOf,
  nodeIpsOf,
  podCidrTexts,
  podRangesOf,
} from './objects/node-fields.ts';
export * from './objects/types.ts';
export { type ReadObjects, readOnce } from './read-once.ts';
export { type AwaitedObject, mergeResources, type Resource, type Substitute } from './resource.ts';
export { ENDPOINT_SLICES, NODES, nodeNamed, POD_CIDR_BLOCKS, SERVICE_CIDRS, SERVICES } from './resources.ts';
export {
  countUnusable,
  type ObjectEvent,
  type ObjectHandler,
  type ObjectSource,
  problemText,
  type SourceProblem,
} from './source.ts';
export { ObjectsOf } from './store.ts';
