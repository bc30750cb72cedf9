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
  const { addresses, conditions, nodeName, targetRef, hints } = endpoint;
  // Nearly all are so. One literal takes a fraction of the time of spreads.
  if (addresses && conditions && nodeName !== undefined && !hints) {
    const [known, node] = [sharedConditions(conditions), shared.text(nodeName)];
    if (targetRef === undefined) return { addresses, conditions: known, nodeName: node };
    return { addresses, conditions: known, nodeName: node, targetRef };
  }
  return {
    ...endpoint,
    ...(conditions && { conditions: sharedConditions(conditions) }),
    ...(nodeName !== undefined && { nodeName: shared.text(nodeName) }),
    ...(hints && { hints: shared.value(hints) }),
  };
}

type Conditions = NonNullable<SliceEndpoint['conditions']>;

/** There are three, each of which is true, false or missing. */
const allConditions = new Array<Conditions | undefined>(27);

function sharedConditions(conditions: Conditions): Conditions {
  const { ready, serving, terminating } = conditions;
  const index = digitOf(ready) * 9 + digitOf(serving) * 3 + digitOf(terminating);
  allConditions[index] ??= conditions;
  return allConditions[index];
}

function digitOf(condition: boolean | undefined): number {
  return condition === undefined ? 0 : condition ? 1 : 2;
}
