import { type IpAddress, ipEquals, type Steps, tryParseIp } from '../../core/index.ts';
import type { Service } from '../../kube/index.ts';
import type { ServicePortPlan } from '../../proxy/index.ts';
import type { DestinationKind } from './knowledge.ts';

type Ports = ReadonlyMap<string, ServicePortPlan>;

/** A Service, and by which of its addresses it is meant. */
export interface FoundService {
  readonly serviceName: string;
  readonly via: DestinationKind;
}

/** Whose an address is; of each the first. */
export interface FoundAddress {
  /** With the port and protocol that are asked for, where they are. */
  readonly exact: FoundService | undefined;
  /** With another port or protocol: Services may share an external address. */
  readonly otherPort: FoundService | undefined;
  /** That has the port that is asked for as its node port, of the protocol. */
  readonly nodePort: FoundService | undefined;
}

/** Looks for an address among the addresses of Services. */
export function* findAddress(
  families: readonly Ports[],
  ip: IpAddress,
  port: number | null,
  protocol: ServicePortPlan['protocol'] | undefined,
): Steps<FoundAddress> {
  const found: { -readonly [K in keyof FoundAddress]: FoundAddress[K] } = {
    exact: undefined,
    otherPort: undefined,
    nodePort: undefined,
  };
  yield* search(families, (one) => {
    const { serviceName } = one;
    const isAsked = (protocol ?? one.protocol) === one.protocol;
    if (port !== null && one.nodePort === port && isAsked) found.nodePort ??= { serviceName, via: 'node-port' };
    const via = viaOf(one, ip);
    if (!via) return false;
    found.otherPort ??= { serviceName, via };
    if (port === null || (one.port === port && isAsked)) found.exact = { serviceName, via };
    return found.exact !== undefined;
  });
  return found;
}

/** The first Service with a node port of the protocol; undefined: of any. */
export function* findNodePort(
  families: readonly Ports[],
  port: number,
  protocol: ServicePortPlan['protocol'] | undefined,
): Steps<string | undefined> {
  let found: string | undefined;
  yield* search(families, (one) => {
    if (one.nodePort === port && (protocol ?? one.protocol) === one.protocol) found = one.serviceName;
    return found !== undefined;
  });
  return found;
}

/** The first Services that have an endpoint with this address. */
export function* servicesWithEndpoint(families: readonly Ports[], ip: IpAddress, most: number): Steps<string[]> {
  const found = new Set<string>();
  yield* search(families, ({ serviceName, clusterEndpoints }) => {
    if (clusterEndpoints.some((endpoint) => ipEquals(endpoint.ip, ip))) found.add(serviceName);
    return found.size >= most;
  });
  return [...found];
}

function viaOf(port: ServicePortPlan, ip: IpAddress): DestinationKind | undefined {
  if (ipEquals(port.clusterIp, ip)) return 'cluster-ip';
  if (port.externalIps.some((other) => ipEquals(other, ip))) return 'external-ip';
  return port.loadBalancerVips.some((other) => ipEquals(other, ip)) ? 'load-balancer-ip' : undefined;
}

/** Looking at one takes less than to ask whether others have waited long enough. */
const PORTS_A_STEP = 64;

/** @param look ends it with `true` */
function* search(families: readonly Ports[], look: (port: ServicePortPlan) => boolean): Steps<void> {
  let looked = 0;
  for (const ports of families) {
    // Plans change while this is interrupted.
    for (const port of [...ports.values()]) {
      if (look(port)) return;
      if (++looked % PORTS_A_STEP === 0) yield;
    }
  }
}

/** The Service whose load balancer has an address and takes connections itself: no node handles it. Undefined: none. */
export function* proxiedService(
  store: { serviceNames(): Iterable<string>; service(name: string): Service | undefined },
  ip: IpAddress,
): Steps<string | undefined> {
  let looked = 0;
  for (const name of [...store.serviceNames()]) {
    const { ingress = [] } = store.service(name)?.status?.loadBalancer ?? {};
    const isIts = ({ ip: text = '', ipMode }: (typeof ingress)[number]) => {
      const own = ipMode === 'Proxy' ? tryParseIp(text) : undefined;
      return own !== undefined && ipEquals(own, ip);
    };
    if (ingress.some(isIts)) return name;
    if (++looked % PORTS_A_STEP === 0) yield;
  }
  return undefined;
}
