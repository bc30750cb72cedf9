import {
  compareText,
  formatIp,
  type IpAddress,
  type IpFamily,
  type Steps,
  trimmed,
  tryParseIp,
} from '../../core/index.ts';
import type { EndpointSlice, Protocol, SliceEndpoint } from '../../kube/index.ts';
import { specialRefusal } from './bounds/address-rules.ts';
import { Findings, type Restriction } from './bounds/findings.ts';
import { LIMITS } from './bounds/limits.ts';

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

/** The endpoints of a Service in one family, as its slices name them. */
export interface ServiceEndpoints {
  /** By `endpointGroup(portName, protocol)` of the ports asked for: the endpoints, each once, sorted by key. */
  readonly groups: ReadonlyMap<string, readonly Endpoint[]>;
  /** What could not be used, in words that name the slice. */
  readonly problems: readonly string[];
  readonly restrictions: ReadonlySet<Restriction>;
  /** How many there are to be used without `cap`, over all ports, usable or not: `most` or less. */
  readonly count: number;
}

/** What is asked for. */
export interface EndpointsWanted {
  readonly family: IpFamily;
  /** Our own node: its endpoints are local. */
  readonly nodeName: string;
  /** The ports of the Service; what slices say about others is nothing to it. */
  readonly ports: readonly { readonly portName: string; readonly protocol: Protocol }[];
  /** So many endpoints, over all ports, at most. @default LIMITS.endpoints */
  readonly most?: number;
  /** And so many besides, because all Services share what there is. @default no further bound */
  readonly cap?: number;
}

/** Service ports and endpoints meet by port name and protocol; numbers may differ from slice to slice. */
export function endpointGroup(portName: string, protocol: Protocol): string {
  return `${portName}/${protocol}`;
}

const NO_HINTS: readonly string[] = [];

/** Each of up to LIMITS.ports endpoints. */
const ITEMS_A_STEP = 10;

/**
 * The endpoints of one Service in one family.
 *
 * An address that is listed twice for a port counts once: one that does not terminate wins over one that does, then a
 * ready one over one that is not, then the slice whose name sorts first. (kube-proxy leaves all but the first undefined.)
 *
 * With more than `most` or `cap`, the slices count in the order of their names and the endpoints of a slice in their own
 * order, each with all of its ports.
 *
 * @param slices the EndpointSlices of the Service, of any address type; other families' slices are passed over
 */
export function* endpointsOf(slices: readonly EndpointSlice[], wanted: EndpointsWanted): Steps<ServiceEndpoints> {
  const { family, nodeName, most = LIMITS.endpoints, cap = most } = wanted;
  const findings = new Findings();
  const groups = new Map<string, readonly Endpoint[]>();
  const found = new Map<string, Endpoint[]>();
  for (const { portName, protocol } of wanted.ports) found.set(endpointGroup(portName, protocol), []);
  const used = Math.min(most, cap);
  let room = used;
  let taken = 0;
  const usable = yield* usableSlices(slices, family, found, findings);
  for (const { slice, ports } of usable) {
    for (const item of slice.endpoints ?? []) {
      const text = item.addresses?.[0];
      if (!text) continue;
      // What cannot be used counts too: reading it takes as long.
      room -= ports.length;
      if (room < 0) break;
      const ip = addressOf(text, slice, family, findings);
      if (!ip) continue;
      addEndpoints(item, ip, ports, nodeName);
      if (++taken % ITEMS_A_STEP === 0) yield;
    }
    yield;
    if (room < 0) {
      findings.restrict('limit', `The Service has more endpoints x ports than the ${used} that are used`);
      break;
    }
  }

  for (const [name, endpoints] of found) {
    if (endpoints.length === 0) continue;
    groups.set(name, eachOnce(endpoints));
    yield;
  }
  const { problems, restrictions } = findings;
  return { groups, problems, restrictions, count: Math.min(most, countOf(usable)) };
}

function countOf(slices: readonly UsableSlice[]): number {
  return slices.reduce((count, { slice, ports }) => count + (slice.endpoints?.length ?? 0) * ports.length, 0);
}

interface UsableSlice {
  readonly slice: EndpointSlice;
  /** Of those asked for: the endpoints' port, and where they go. */
  readonly ports: readonly { readonly port: number; readonly group: Endpoint[] }[];
}

/**
 * The slices of the family that say something about the ports of the Service, by name.
 *
 * @param groups of the ports of the Service, by `endpointGroup`
 */
function* usableSlices(
  slices: readonly EndpointSlice[],
  family: IpFamily,
  groups: ReadonlyMap<string, Endpoint[]>,
  findings: Findings,
): Steps<readonly UsableSlice[]> {
  const result: UsableSlice[] = [];
  const mine = slices.filter((slice) => slice.addressType === family);
  if (mine.length > 1) mine.sort((a, b) => compareText(a.metadata.name, b.metadata.name));
  let room: number = LIMITS.slicePorts;
  for (const slice of mine) {
    room -= slice.ports?.length ?? 0;
    if (room < 0) {
      const text = `The EndpointSlices have more than ${LIMITS.slicePorts} ports; those from "${slice.metadata.name}" on are not used`;
      findings.restrict('limit', text);
      break;
    }
    const usable = usablePorts(slice, groups);
    if (usable.length > 0) result.push({ slice, ports: usable });
    yield;
  }
  return result;
}

/** A missing name is the empty one and a missing protocol is TCP, as the API server fills them in. */
function usablePorts(slice: EndpointSlice, groups: ReadonlyMap<string, Endpoint[]>): UsableSlice['ports'] {
  const usable = [];
  for (const { name, protocol, port } of slice.ports ?? []) {
    const group = groups.get(endpointGroup(name ?? '', protocol ?? 'TCP'));
    if (port && group) usable.push({ port, group });
  }
  return usable;
}

/** An address that can be a pod's; as the API server refuses the others, and manifests and Endpoints must be no way around. */
function addressOf(text: string, slice: EndpointSlice, family: IpFamily, findings: Findings): IpAddress | undefined {
  const ip = tryParseIp(text);
  if (ip?.family !== family) {
    findings.push(`EndpointSlice "${slice.metadata.name}" has "${text}", which is not an ${family} address`);
    return undefined;
  }
  const refusal = specialRefusal(ip);
  if (refusal === undefined) return ip;
  findings.restrict('refused', `EndpointSlice "${slice.metadata.name}" has "${text}", which ${refusal}`);
  return undefined;
}

/** What an item of a slice is to each of its ports. What the ports share is made once. */
function addEndpoints(
  { conditions, hints, nodeName }: SliceEndpoint,
  ip: IpAddress,
  ports: UsableSlice['ports'],
  ownNodeName: string,
): void {
  // As `formatIpPort`, which would write the address anew for each port.
  const host = ip.family === 'IPv4' ? formatIp(ip) : `[${formatIp(ip)}]`;
  const isLocal = nodeName === ownNodeName;
  const ready = conditions?.ready ?? true;
  const serving = conditions?.serving ?? true;
  const terminating = conditions?.terminating ?? false;
  const zoneHints = hints?.forZones?.map((zone) => zone.name) ?? NO_HINTS;
  const nodeHints = hints?.forNodes?.map((node) => node.name) ?? NO_HINTS;
  for (const { port, group } of ports) {
    const key = `${host}:${port}`;
    // One literal: what a spread adds costs twice the memory of the whole.
    group.push({ ip, port, key, isLocal, ready, serving, terminating, zoneHints, nodeHints });
  }
}

/**
 * Sorted by key, which for addresses is the order of bytes that kube-proxy sorts by; of those with the same key the
 * best one, and of equally good ones the first.
 */
function eachOnce(endpoints: Endpoint[]): readonly Endpoint[] {
  endpoints.sort((a, b) => compareText(a.key, b.key));
  if (endpoints.every(({ key }, index) => index === 0 || endpoints[index - 1]!.key !== key)) return trimmed(endpoints);
  const once: Endpoint[] = [];
  for (const endpoint of endpoints) {
    const last = once.at(-1);
    if (last?.key !== endpoint.key) once.push(endpoint);
    else if (rank(endpoint) > rank(last)) once[once.length - 1] = endpoint;
  }
  return once;
}

function rank(endpoint: Endpoint): number {
  return (endpoint.terminating ? 0 : 4) + (endpoint.ready ? 2 : 0) + (endpoint.serving ? 1 : 0);
}
