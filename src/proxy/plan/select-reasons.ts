import type { Endpoint } from './endpoint.ts';
import { fitsTopology, isFallback, type Place, type Topology, topologyOf, type Wanted } from './select.ts';

// The same decision as selectEndpoints, told endpoint by endpoint. Only asked by people, hence apart from the hot path.

/** Why an endpoint is in a set, or is not. */
export type EndpointReason =
  /** Used: ready, and no complete hints narrow the choice. */
  | 'ready'
  /** Used: ready, and hinted for this node. */
  | 'same-node'
  /** Used: ready, and hinted for this zone. */
  | 'same-zone'
  /** Used: terminating but serving, because nothing in reach is ready. */
  | 'terminating-fallback'
  /** Not used: hinted for other nodes. */
  | 'other-node'
  /** Not used: hinted for other zones. */
  | 'other-zone'
  /** Not used: policy Local, and it runs on another node. */
  | 'not-local'
  /** Not used: terminating, and others are ready. */
  | 'terminating'
  /** Not used: neither ready nor both serving and terminating. */
  | 'not-ready'
  /** Not used: no destination of the Service port follows this policy. */
  | 'policy-not-used';

const IN_USE: Readonly<Record<EndpointReason, boolean>> = {
  ready: true,
  'same-node': true,
  'same-zone': true,
  'terminating-fallback': true,
  'other-node': false,
  'other-zone': false,
  'not-local': false,
  terminating: false,
  'not-ready': false,
  'policy-not-used': false,
};

const IN_TOPOLOGY = {
  everywhere: 'ready',
  'same-node': 'same-node',
  'same-zone': 'same-zone',
} as const satisfies Record<Topology, EndpointReason>;
const OUTSIDE_TOPOLOGY = {
  everywhere: 'ready',
  'same-node': 'other-node',
  'same-zone': 'other-zone',
} as const satisfies Record<Topology, EndpointReason>;

/** An endpoint, and why it is used or not under each policy. */
export interface ExplainedEndpoint {
  readonly endpoint: Endpoint;
  /** For destinations under policy Cluster. */
  readonly cluster: EndpointReason;
  /** For destinations under policy Local. */
  readonly local: EndpointReason;
}

/** Whether an endpoint with this reason is used. */
export function isInUse(reason: EndpointReason): boolean {
  return IN_USE[reason];
}

/** Says for every endpoint why `selectEndpoints`, given the same arguments, uses it or not. */
export function explainSelection(
  endpoints: readonly Endpoint[],
  wanted: Wanted,
  place: Place,
): readonly ExplainedEndpoint[] {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  const anyReadyHere = ready.some((endpoint) => endpoint.isLocal);
  const topology = topologyOf(ready, place);

  const clusterReason = (endpoint: Endpoint): EndpointReason => {
    if (!wanted.cluster) return 'policy-not-used';
    if (!endpoint.ready) return unreadyReason(endpoint, ready.length > 0);
    return (fitsTopology(endpoint, topology, place) ? IN_TOPOLOGY : OUTSIDE_TOPOLOGY)[topology];
  };
  const localReason = (endpoint: Endpoint): EndpointReason => {
    if (!wanted.local) return 'policy-not-used';
    if (!endpoint.isLocal) return 'not-local';
    return endpoint.ready ? 'ready' : unreadyReason(endpoint, anyReadyHere);
  };
  return endpoints.map((endpoint) => ({
    endpoint,
    cluster: clusterReason(endpoint),
    local: localReason(endpoint),
  }));
}

function unreadyReason(endpoint: Endpoint, othersReady: boolean): EndpointReason {
  if (!isFallback(endpoint)) return 'not-ready';
  return othersReady ? 'terminating' : 'terminating-fallback';
}
