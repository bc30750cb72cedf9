import type { Endpoint } from './endpoint.ts';

// Which endpoints of a Service port are used. One pure function; dataplanes and `explain` both rest on it.

/** Where we are. */
export interface Place {
  readonly nodeName: string;
  /** Label `topology.kubernetes.io/zone` of the node; empty: none. */
  readonly zone: string;
}

/** Which of the two sets a Service port needs at all. */
export interface Wanted {
  /** Some destination of the port follows policy Cluster. */
  readonly cluster: boolean;
  /** Some destination of the port follows policy Local. */
  readonly local: boolean;
}

/** What is used of the endpoints of a Service port. */
export interface Selection {
  /** Used under policy Cluster, in the order given; empty when not wanted. */
  readonly clusterEndpoints: readonly Endpoint[];
  /** Used under policy Local, in the order given; empty when not wanted. */
  readonly localEndpoints: readonly Endpoint[];
  /** Whether any endpoint on any node could serve. */
  readonly hasAnyEndpoints: boolean;
}

/** How traffic distribution hints narrow the ready endpoints. */
export type Topology = 'everywhere' | 'same-node' | 'same-zone';

/**
 * Chooses the endpoints of one Service port.
 *
 * Policy Cluster: the ready endpoints, narrowed to this node if every ready endpoint has node hints and one names this
 * node, else to this zone if every ready endpoint has zone hints and one names this zone (KEP-2433, KEP-3015). Hints are
 * all or nothing, because an incomplete set means that the controller is still at work.
 * Policy Local: the ready endpoints of this node; hints do not count.
 * Either one, with nothing ready: those that terminate but still serve, rather than nothing (KEP-1669).
 *
 * @param endpoints all endpoints of the port, sorted by key; the results keep that order
 * @returns every endpoint in a result is ready, or both serving and terminating; never a mixture of the two
 */
export function selectEndpoints(endpoints: readonly Endpoint[], wanted: Wanted, place: Place): Selection {
  return {
    clusterEndpoints: wanted.cluster ? clusterSet(endpoints, place) : NO_ENDPOINTS,
    localEndpoints: wanted.local ? readyOrFallback(endpoints.filter((endpoint) => endpoint.isLocal)) : NO_ENDPOINTS,
    hasAnyEndpoints: endpoints.some((endpoint) => endpoint.ready || isFallback(endpoint)),
  };
}

const NO_ENDPOINTS: readonly Endpoint[] = [];

/** What the hints of the ready endpoints amount to. */
export function topologyOf(ready: readonly Endpoint[], place: Place): Topology {
  if (ready.length === 0) return 'everywhere';
  let allNode = true;
  let allZone = true;
  let hereNode = false;
  let hereZone = false;
  for (const endpoint of ready) {
    if (endpoint.nodeHints.length === 0) allNode = false;
    else hereNode ||= endpoint.nodeHints.includes(place.nodeName);
    if (endpoint.zoneHints.length === 0) allZone = false;
    else hereZone ||= endpoint.zoneHints.includes(place.zone);
    if (!allNode && !allZone) return 'everywhere';
  }
  if (allNode && hereNode) return 'same-node';
  return allZone && hereZone ? 'same-zone' : 'everywhere';
}

/** Whether a ready endpoint passes the hints. */
export function fitsTopology(endpoint: Endpoint, topology: Topology, place: Place): boolean {
  switch (topology) {
    case 'everywhere':
      return true;
    case 'same-node':
      return endpoint.nodeHints.includes(place.nodeName);
    case 'same-zone':
      return endpoint.zoneHints.includes(place.zone);
    default:
      return topology satisfies never;
  }
}

function isReady(endpoint: Endpoint): boolean {
  return endpoint.ready;
}

/** On its way out, but answering: better than nobody. */
export function isFallback(endpoint: Endpoint): boolean {
  return endpoint.serving && endpoint.terminating;
}

function clusterSet(endpoints: readonly Endpoint[], place: Place): readonly Endpoint[] {
  const usable = readyOrFallback(endpoints);
  if (!usable[0]?.ready) return usable;
  const topology = topologyOf(usable, place);
  return topology === 'everywhere' ? usable : usable.filter((endpoint) => fitsTopology(endpoint, topology, place));
}

function readyOrFallback(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  if (endpoints.every(isReady)) return endpoints;
  const ready = endpoints.filter(isReady);
  return ready.length > 0 ? ready : endpoints.filter(isFallback);
}
