import type { SharedValues } from './shared-values.ts';
import type { EndpointSlice, SliceEndpoint } from './types.ts';

// Decoded slices in less memory: what grows with the cluster is kept once.

/** Node names, conditions, hints and ports repeat in most of a cluster's slices. */
export function slimSlice(slice: EndpointSlice, shared: SharedValues): EndpointSlice {
  const { endpoints, ports } = slice;
  return {
    ...slice,
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
