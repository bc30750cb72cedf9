import {
  formatIp,
  formatIpPort,
  IP_PROTOCOLS,
  type IpAddress,
  ipEquals,
  isLoopback,
  readBe32,
  type Steps,
} from '../../core/index.ts';
import type { Protocol } from '../../kube/index.ts';
import type { NodePlan, PlanDelta, ServicePortPlan } from '../plan/index.ts';

// NAT rules see only the first packet of a flow; conntrack remembers where it went. A UDP client that goes on sending
// from one port would be led to an endpoint that is gone for ever, so such flows are forgotten when endpoints change.
// A connection of TCP that somebody answered ends by itself and is left alone, as in kube-proxy. One that nobody answers
// is begun again and again by its client's kernel, for two minutes, and each time conntrack leads it where it led it first.

/** The protocols whose flows are looked after. */
const LOOKED_AFTER: readonly Protocol[] = ['UDP', 'SCTP'];

/** A Service port whose flows have to be looked at. */
export interface TouchedPort {
  /** As it is now; undefined: there is none any more. */
  readonly current: ServicePortPlan | undefined;
  /** As it was: at the last cleaning and just before it became what it is. */
  readonly earlier: readonly ServicePortPlan[];
}

/** By key of the port. Only ports of protocols that are looked after are in it. */
export type TouchedPorts = Map<string, TouchedPort>;

/**
 * Remembers what a delta touches of `protocols`; several deltas add up until their flows have been cleaned. A port that has only got
 * more endpoints is left out: that makes no flow stale.
 */
export function addTouched(
  touched: TouchedPorts,
  { upserted, removed, replaced = [] }: PlanDelta,
  protocols = LOOKED_AFTER,
): void {
  const formerly = new Map(replaced.map((plan) => [plan.key, plan]));
  for (const plan of removed) {
    if (protocols.includes(plan.protocol)) touched.set(plan.key, { current: undefined, earlier: withEarlier(plan) });
  }
  for (const plan of upserted) {
    if (!protocols.includes(plan.protocol)) continue;
    const before = formerly.get(plan.key);
    if (before && !touched.has(plan.key) && stillLeads(before, plan)) continue;
    const earlier = before ? withEarlier(before) : (touched.get(plan.key)?.earlier ?? []);
    touched.set(plan.key, { current: plan, earlier });
  }

  function withEarlier(plan: ServicePortPlan): readonly ServicePortPlan[] {
    const first = touched.get(plan.key)?.earlier[0];
    return first ? [first, plan] : [plan];
  }
}

/** Whether all that the port led right before it still does: the same destinations, and the endpoints of before among those of now. */
function stillLeads(before: ServicePortPlan, now: ServicePortPlan): boolean {
  const [from, to] = [addressesOf(before), addressesOf(now)];
  const isSame = (ip: IpAddress, i: number) => ipEquals(ip, to[i]!);
  if (before.port !== now.port || before.nodePort !== now.nodePort) return false;
  if (from.length !== to.length || !from.every(isSame)) return false;
  // What began when there was none may not be translated.
  const [former, answering] = [answeringOf(before), answeringOf(now)];
  return former.size > 0 && [...former].every((endpoint) => answering.has(endpoint));
}

/** Where flows to touched ports go, told from little: a few others may pass, but none of theirs is missed. */
export interface Whereabouts {
  /** Destination ports of the flows, in host byte order: those of Services and NodePorts. */
  readonly ports: ReadonlySet<number>;
  /** False: the flow is to none of them. */
  mayBeTo(flow: TrackedFlow): boolean;
}

/** Looks at each of the ports, with places for a pause: there may be 10,000. */
export function* whereaboutsOf(touched: TouchedPorts): Steps<Whereabouts> {
  const [ports, nodePorts, ends] = [new Set<number>(), new Set<number>(), new Set<number>()];
  for (const one of touched.values()) {
    yield;
    for (const plan of plansOf(one)) {
      ports.add(plan.port);
      for (const ip of addressesOf(plan)) ends.add(endOf(ip));
      if (plan.nodePort !== 0) nodePorts.add(plan.nodePort);
    }
  }
  for (const port of nodePorts) ports.add(port);
  return {
    ports,
    mayBeTo: ({ original: { destination, destinationPort } }) =>
      nodePorts.has(destinationPort) || ends.has(endOf(destination)),
  };
}

/**
 * Those of the ports that one of a few flows may have gone to: to prepare `staleFlows` for 10,000 ports takes more than ten times as
 * long as to find these.
 */
export function touchedBy(touched: TouchedPorts, flows: readonly TrackedFlow[]): TouchedPorts {
  const ports = new Set(flows.map(({ original }) => original.destinationPort));
  const ends = new Set(flows.map(({ original }) => endOf(original.destination)));
  const isAsked = (plan: ServicePortPlan) =>
    (plan.nodePort !== 0 && ports.has(plan.nodePort)) ||
    (ports.has(plan.port) && addressesOf(plan).some((ip) => ends.has(endOf(ip))));
  return new Map([...touched].filter(([, one]) => plansOf(one).some(isAsked)));
}

function plansOf({ current, earlier }: TouchedPort): readonly ServicePortPlan[] {
  return current ? [current, ...earlier] : earlier;
}

function addressesOf({ clusterIp, externalIps, loadBalancerVips }: ServicePortPlan): readonly IpAddress[] {
  return [clusterIp, ...externalIps, ...loadBalancerVips];
}

/** The last four bytes: few addresses have them in common. */
function endOf({ bytes }: IpAddress): number {
  return readBe32(bytes, bytes.length - 4);
}

/** What of a tracked flow decides. */
export interface TrackedFlow {
  /** IPPROTO_*. */
  readonly protocol: number;
  readonly original: { readonly destination: IpAddress; readonly destinationPort: number };
  readonly reply: { readonly source: IpAddress; readonly sourcePort: number };
}

/** Where stale flows may have gone and how to tell them. */
export interface StaleFlows {
  /** Without `ip`: a NodePort. */
  readonly destinations: readonly { readonly protocol: number; readonly port: number; readonly ip?: IpAddress }[];
  isStale(flow: TrackedFlow): boolean;
}

/**
 * Which flows the touched ports have made stale.
 *
 * A flow to an address and port that a touched Service has *now* is stale unless a serving endpoint of it answers: its
 * endpoint is gone or has another port, or there was none when the flow began and it never was translated. Without any
 * serving endpoint all of them are, so that clients hear the refusal.
 *
 * A flow to one the Service had *before* is stale only if one of the endpoints of that time answers: the address may
 * belong to somebody else by now, whose flows are none of our business.
 *
 * @param isNodePortAddress whether an address answers on NodePorts; a flow through this node to the same port number of
 *   another host is no Service traffic
 */
export function* staleFlows(touched: TouchedPorts, isNodePortAddress: (ip: IpAddress) => boolean): Steps<StaleFlows> {
  const known = new Map<string, Destination>();
  for (const { current, earlier } of touched.values()) {
    yield;
    if (current) enterAll(known, current, 'serving');
    for (const plan of earlier) enterAll(known, plan, 'former');
  }
  return {
    destinations: [...known.values()],
    isStale({ protocol, original, reply }) {
      const { destination: ip, destinationPort: port } = original;
      const found =
        known.get(keyOf({ protocol, ip, port })) ??
        (isNodePortAddress(ip) ? known.get(keyOf({ protocol, port })) : undefined);
      if (!found) return false;
      const answering = formatIpPort(reply.source, reply.sourcePort);
      const answers = (endpoints: ReadonlySet<string>) => endpoints.has(answering);
      return found.serving ? !found.serving.some(answers) : found.former.some(answers);
    },
  };
}

/** What decides whether an address answers on NodePorts. */
export interface NodePortAddressInput extends Pick<NodePlan, 'nodePortAddresses'> {
  /** The addresses on this machine's interfaces. */
  readonly localAddresses: readonly IpAddress[];
  /** Whether loopback addresses answer on NodePorts. @default false */
  readonly localhost?: boolean;
}

/** Tells the addresses that answer on NodePorts. */
export function nodePortAddressTest(input: NodePortAddressInput): (ip: IpAddress) => boolean {
  const { nodePortAddresses, localAddresses, localhost = false } = input;
  const addresses = nodePortAddresses === 'all' ? localAddresses : nodePortAddresses;
  const texts = new Set(addresses.map(formatIp));
  return (ip) => (isLoopback(ip) ? localhost : texts.has(formatIp(ip)));
}

interface Destination {
  readonly protocol: number;
  readonly port: number;
  readonly ip?: IpAddress;
  /**
   * `ip:port` of the endpoints that may answer, by plan; undefined when no touched port has this destination any more. All
   * destinations of a plan share one set: a Service may have a thousand of either.
   */
  serving?: ReadonlySet<string>[];
  /** The same of earlier plans. */
  readonly former: ReadonlySet<string>[];
}

function enterAll(known: Map<string, Destination>, plan: ServicePortPlan, as: 'serving' | 'former'): void {
  const protocol = IP_PROTOCOLS[plan.protocol];
  const answering = answeringOf(plan);
  const destinations: Pick<Destination, 'protocol' | 'port' | 'ip'>[] = addressesOf(plan).map((ip) => ({
    protocol,
    port: plan.port,
    ip,
  }));
  if (plan.nodePort !== 0) destinations.push({ protocol, port: plan.nodePort });
  for (const destination of destinations) {
    const key = keyOf(destination);
    const entry: Destination = known.get(key) ?? { ...destination, former: [] };
    known.set(key, entry);
    if (as === 'former') entry.former.push(answering);
    else if (entry.serving) entry.serving.push(answering);
    else entry.serving = [answering];
  }
}

/** `ip:port` of the endpoints that may answer. */
function answeringOf({ servingEndpoints, clusterEndpoints, localEndpoints }: ServicePortPlan): ReadonlySet<string> {
  const endpoints = servingEndpoints ?? [...clusterEndpoints, ...localEndpoints];
  return new Set(endpoints.map((endpoint) => endpoint.key));
}

function keyOf({ protocol, ip, port }: { protocol: number; ip?: IpAddress; port: number }): string {
  return `${protocol}/${ip ? formatIpPort(ip, port) : port}`;
}
