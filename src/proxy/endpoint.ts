import { formatIpPort, type IpAddress, type IpFamily, tryParseIp } from '../core/index.ts';
import type { EndpointSlice, Protocol, SliceEndpoint } from '../kube/index.ts';

/** One backend of a Service port, taken from an EndpointSlice. Immutable. */
export interface Endpoint {
  readonly ip: IpAddress;
  readonly port: number;
  /** `ip:port`, IPv6 in brackets: identity and sort key within a Service port. */
  readonly key: string;
  /** Runs on this node. */
  readonly isLocal: boolean;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  /** Zones this endpoint is meant for (`hints.forZones`); empty: no hint. */
  readonly zoneHints: readonly string[];
  /** Nodes this endpoint is meant for (`hints.forNodes`); empty: no hint. */
  readonly nodeHints: readonly string[];
}

export interface ServiceEndpoints {
  /** By `endpointGroup(portName, protocol)`: the endpoints, each once, sorted by key. */
  readonly groups: ReadonlyMap<string, readonly Endpoint[]>;
  /** What could not be used, in words that name the slice. */
  readonly problems: readonly string[];
}

/** Service ports and endpoints meet by port name and protocol; numbers may differ from slice to slice. */
export function endpointGroup(portName: string, protocol: Protocol): string {
  return `${portName}/${protocol}`;
}

const NO_HINTS: readonly string[] = [];

/**
 * All endpoints of one Service in one family.
 *
 * @param slices the EndpointSlices of the Service, of any address type; other families' slices are passed over
 * @param nodeName our own node: its endpoints are local
 *
 * An address that is listed twice for a port counts once: one that does not terminate wins over one that does, then a
 * ready one over one that is not, then the slice whose name sorts first. (kube-proxy leaves all but the first undefined.)
 */
export function endpointsOf(slices: readonly EndpointSlice[], family: IpFamily, nodeName: string): ServiceEndpoints {
  const problems: string[] = [];
  const found = new Map<string, Map<string, Endpoint>>();
  const mine = slices.filter((slice) => slice.addressType === family);
  if (mine.length > 1) mine.sort((a, b) => compareText(a.metadata.name, b.metadata.name));

  for (const slice of mine) {
    const ports = usablePorts(slice, found);
    if (ports.length === 0) continue;
    for (const item of slice.endpoints ?? []) {
      const text = item.addresses?.[0];
      if (!text) continue;
      const ip = tryParseIp(text);
      if (ip?.family !== family) {
        problems.push(`EndpointSlice "${slice.metadata.name}" has "${text}", which is not an ${family} address`);
        continue;
      }
      for (const { port, group } of ports) keepBetter(group, makeEndpoint(item, ip, port, nodeName));
    }
  }

  const groups = new Map<string, readonly Endpoint[]>();
  for (const [name, endpoints] of found) {
    groups.set(
      name,
      [...endpoints.values()].sort((a, b) => compareText(a.key, b.key)),
    );
  }
  return { groups, problems };
}

/**
 * The ports of a slice with the group each one feeds. A missing name is the empty one and a missing protocol is TCP, as
 * the API server fills them in.
 */
function usablePorts(
  slice: EndpointSlice,
  found: Map<string, Map<string, Endpoint>>,
): { readonly port: number; readonly group: Map<string, Endpoint> }[] {
  const usable = [];
  for (const { name, protocol, port } of slice.ports ?? []) {
    if (!port) continue;
    const groupName = endpointGroup(name ?? '', protocol ?? 'TCP');
    let group = found.get(groupName);
    if (!group) {
      group = new Map();
      found.set(groupName, group);
    }
    usable.push({ port, group });
  }
  return usable;
}

function makeEndpoint(item: SliceEndpoint, ip: IpAddress, port: number, nodeName: string): Endpoint {
  const { conditions, hints } = item;
  return {
    ip,
    port,
    key: formatIpPort(ip, port),
    isLocal: item.nodeName === nodeName,
    ready: conditions?.ready ?? true,
    serving: conditions?.serving ?? true,
    terminating: conditions?.terminating ?? false,
    zoneHints: hints?.forZones?.map((zone) => zone.name) ?? NO_HINTS,
    nodeHints: hints?.forNodes?.map((node) => node.name) ?? NO_HINTS,
  };
}

function keepBetter(group: Map<string, Endpoint>, endpoint: Endpoint): void {
  const present = group.get(endpoint.key);
  if (!present || rank(endpoint) > rank(present)) group.set(endpoint.key, endpoint);
}

function rank(endpoint: Endpoint): number {
  return (endpoint.terminating ? 0 : 4) + (endpoint.ready ? 2 : 0) + (endpoint.serving ? 1 : 0);
}

/** Plain order of characters, which for addresses is the order of bytes that kube-proxy sorts by. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
