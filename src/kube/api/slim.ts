import type { EndpointSlice, Node, ObjectMeta, Service, ServiceCIDR, SliceEndpoint } from '../types.ts';
import type { SharedValues } from './shared-values.ts';

// Decoded objects in less memory: what grows with the cluster is kept once, and what nobody reads is left out.

/** kubectl apply's copy of the whole object. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

export function slimService(service: Service): Service {
  return { ...service, metadata: slimMetadata(service.metadata) };
}

export function slimNode(node: Node): Node {
  return { ...node, metadata: slimMetadata(node.metadata) };
}

export function slimServiceCidr(cidr: ServiceCIDR): ServiceCIDR {
  return { ...cidr, metadata: slimMetadata(cidr.metadata) };
}

/** Node names, conditions, hints and ports repeat in most of a cluster's slices. */
export function slimSlice(slice: EndpointSlice, shared: SharedValues): EndpointSlice {
  const { metadata, endpoints, ports } = slice;
  return {
    ...slice,
    metadata: slimMetadata(metadata),
    ...(endpoints && { endpoints: endpoints.map((endpoint) => slimEndpoint(endpoint, shared)) }),
    ...(ports && { ports: shared.value(ports) }),
  };
}

function slimEndpoint(endpoint: SliceEndpoint, shared: SharedValues): SliceEndpoint {
  const { conditions, nodeName, hints } = endpoint;
  return {
    ...endpoint,
    ...(conditions && { conditions: shared.value(conditions) }),
    ...(nodeName !== undefined && { nodeName: shared.text(nodeName) }),
    ...(hints && { hints: shared.value(hints) }),
  };
}

function slimMetadata(metadata: ObjectMeta): ObjectMeta {
  if (metadata.annotations?.[LAST_APPLIED] === undefined) return metadata;
  const { [LAST_APPLIED]: _, ...annotations } = metadata.annotations;
  return { ...metadata, annotations };
}
