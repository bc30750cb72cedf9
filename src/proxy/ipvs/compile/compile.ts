import { cidrContains, IP_PROTOCOLS, type IpAddress, type IpProtocol, type Steps } from '../../../core/index.ts';
import { IP_VS_SVC_F_SCHED_SH_FALLBACK, type VirtualServerKey } from '../../../netlink/ipvs/index.ts';
import type { Endpoint, ServicePortPlan } from '../../index.ts';
import { BY_SOURCE, parseScheduler, type Server, type ServerEndpoint, serverKey } from './server.ts';
import type { Element, SetElement, SetName } from './sets.ts';

/** What compiling depends on besides the Service port. */
export interface CompileContext {
  /** The local addresses that answer on NodePorts; loopback is never among them. */
  readonly nodePortAddresses: readonly IpAddress[];
  readonly nodeIp: IpAddress | undefined;
  /** Of Services that name none; see `parseScheduler`. */
  readonly scheduler: string;
  /** The mark of a Service port with policy Local; throws ERR_DATAPLANE when there is none left. */
  readonly mark: (key: string) => number;
}

/** How an address comes to this node. */
export type Binding =
  /** By being an address of kube-ipvs0. */
  | 'always'
  /** As before, unless another interface has the address. */
  | 'unlessLocal'
  /** It is an address of the node. */
  | 'never';

/** One destination of a Service port: what packets to an address and port, or with a mark, meet. */
export interface Claim {
  /** Undefined: they are refused. */
  readonly server: Server | undefined;
  /** Undefined for a mark. */
  readonly address: { readonly ip: IpAddress; readonly binding: Binding } | undefined;
  readonly elements: readonly SetElement[];
}

/** What one Service port is in IPVS. */
export interface CompiledPort {
  /** Of its plan, for messages. */
  readonly name: string;
  /** Of its plan. */
  readonly serviceName: string;
  /** By `serverKey`. */
  readonly claims: ReadonlyMap<string, Claim>;
  /** Members that several Service ports may want alike. */
  readonly shared: readonly SetElement[];
}

/** Compiles one Service port. Pure, but for the mark it may take. Throws ERR_DATAPLANE when there is none left. */
export function* compilePort(port: ServicePortPlan, context: CompileContext): Steps<CompiledPort> {
  const claims = new Map<string, Claim>();
  const claim = (key: VirtualServerKey, made: Claim) => {
    const text = serverKey(key);
    // An external IP that is a load-balancer VIP too counts once.
    if (!claims.has(text)) claims.set(text, made);
  };
  const settings = settingsOf(port, context);
  const server = (key: VirtualServerKey, endpoints: readonly Endpoint[]): Server => ({
    key: serverKey(key),
    virtual: { key, ...(key.kind === 'mark' ? settingsOfMark(settings) : settings) },
    protocol: port.protocol,
    endpoints: endpointMap(endpoints),
    owner: port.key,
  });

  const clusterIp = addressKey(port.protocol, port.clusterIp, port.port);
  claim(clusterIp, {
    server: port.internalVerdict === 'forward' ? server(clusterIp, internalEndpoints(port)) : undefined,
    address: { ip: port.clusterIp, binding: 'always' },
    elements: [targetElement(INTERNAL_SET[port.internalVerdict], port.protocol, port.clusterIp, port.port)],
  });

  const external = yield* externalDestinations(port, context);
  const mark = hasOwnOutside(port) && external.length > 0 ? context.mark(port.key) : undefined;
  for (const { ip, number, binding, elements } of external) {
    yield;
    const key = addressKey(port.protocol, ip, number);
    const target = (set: SetName, extra: { mark?: number } = {}) =>
      targetElement(set, port.protocol, ip, number, extra);
    if (!port.hasAnyEndpoints) {
      claim(key, { server: undefined, address: { ip, binding }, elements: [target('KUBE-REJECT')] });
      continue;
    }
    // Traffic from outside that may only go to endpoints here is dropped, or led away by its mark, before it gets there.
    const outside = port.externalVerdict === 'drop' ? [target('KUBE-DROP-OUTSIDE')] : [];
    const marked = mark === undefined ? [] : [target('KUBE-IPVS-MARK', { mark })];
    claim(key, {
      server: server(key, port.clusterEndpoints),
      address: { ip, binding },
      elements: [...elements, ...outside, ...marked],
    });
  }
  if (mark !== undefined) {
    const key: VirtualServerKey = { kind: 'mark', family: port.clusterIp.family, mark };
    claim(key, { server: server(key, port.localEndpoints), address: undefined, elements: [] });
  }
  const { name, serviceName } = port;
  return { name, serviceName, claims, shared: sharedElements(port) };
}

/** Whether traffic from outside has other endpoints than that of the node and its pods. */
function hasOwnOutside(port: ServicePortPlan): boolean {
  return port.externalPolicy === 'Local' && port.externalVerdict === 'forward' && port.hasAnyEndpoints;
}

const INTERNAL_SET = { forward: 'KUBE-CLUSTER-IP', reject: 'KUBE-REJECT', drop: 'KUBE-DROP' } as const;

function settingsOf(port: ServicePortPlan, context: CompileContext) {
  // The hint of this mode is a scheduler with its flags: `mh,mh-fallback`.
  const { scheduler, flags } = parseScheduler(port.hint ?? context.scheduler);
  return { scheduler, flags, persistenceSeconds: port.affinitySeconds };
}

/**
 * Of a server by mark with persistence the kernel sends connections to the port that the client asked for, not to the endpoint's
 * (ip_vs_sched_persist, net/netfilter/ipvs/ip_vs_core.c). So a client's address chooses its endpoint there, for ever and not for the
 * time of the affinity; an endpoint that comes or goes moves other clients too.
 */
function settingsOfMark(settings: ReturnType<typeof settingsOf>): ReturnType<typeof settingsOf> {
  if (settings.persistenceSeconds === 0) return settings;
  return { scheduler: BY_SOURCE, flags: IP_VS_SVC_F_SCHED_SH_FALLBACK, persistenceSeconds: 0 };
}

function internalEndpoints(port: ServicePortPlan): readonly Endpoint[] {
  return port.internalPolicy === 'Local' ? port.localEndpoints : port.clusterEndpoints;
}

interface ExternalDestination {
  readonly ip: IpAddress;
  readonly number: number;
  readonly binding: Binding;
  readonly elements: readonly SetElement[];
}

/** External IPs, load-balancer VIPs, and the NodePort at each of the node's addresses. */
function* externalDestinations(port: ServicePortPlan, context: CompileContext): Steps<ExternalDestination[]> {
  const { protocol } = port;
  const local = port.externalPolicy === 'Local';
  const destinations: ExternalDestination[] = [];
  for (const ip of port.loadBalancerVips) {
    yield;
    const target = (set: SetName) => targetElement(set, protocol, ip, port.port);
    const elements = [
      target('KUBE-LOAD-BALANCER'),
      ...(local ? [target('KUBE-LOAD-BALANCER-LOCAL')] : []),
      ...(port.sourceRanges.length > 0 ? [target('KUBE-LOAD-BALANCER-FW'), ...sourceElements(port, ip, context)] : []),
    ];
    destinations.push({ ip, number: port.port, binding: 'unlessLocal', elements });
  }
  for (const ip of port.externalIps) {
    const set = local ? 'KUBE-EXTERNAL-IP-LOCAL' : 'KUBE-EXTERNAL-IP';
    const elements = [targetElement(set, protocol, ip, port.port)];
    destinations.push({ ip, number: port.port, binding: 'unlessLocal', elements });
  }
  if (port.nodePort === 0) return destinations;
  for (const ip of context.nodePortAddresses) {
    const sctp: SetName[] = ['KUBE-NODE-PORT-SCTP-HASH', ...(local ? ['KUBE-NODE-PORT-LOCAL-SCTP-HASH' as const] : [])];
    const elements = protocol === 'SCTP' ? sctp.map((set) => targetElement(set, protocol, ip, port.nodePort)) : [];
    destinations.push({ ip, number: port.nodePort, binding: 'never', elements });
  }
  return destinations;
}

/** Who may use a load-balancer VIP. A node that may uses the VIP as its own source, because kube-ipvs0 has it. */
function sourceElements(port: ServicePortPlan, ip: IpAddress, { nodeIp }: CompileContext): SetElement[] {
  const elements: SetElement[] = port.sourceRanges.map(({ address, prefixLength }) => ({
    set: 'KUBE-LOAD-BALANCER-SOURCE-CIDR',
    element: {
      type: 'hash:ip,port,net',
      address: ip,
      protocol: port.protocol,
      port: port.port,
      network: address,
      prefixLength,
    },
  }));
  if (nodeIp && port.sourceRanges.some((range) => cidrContains(range, nodeIp))) {
    const element: Element = {
      type: 'hash:ip,port,ip',
      address: ip,
      protocol: port.protocol,
      port: port.port,
      second: ip,
    };
    elements.push({ set: 'KUBE-LOAD-BALANCER-SOURCE-IP', element });
  }
  return elements;
}

/** NodePorts of TCP and UDP, and health check ports, are told by their number alone. */
function sharedElements(port: ServicePortPlan): SetElement[] {
  const elements: SetElement[] = [];
  const add = (set: SetName, number: number) => elements.push({ set, element: { type: 'bitmap:port', port: number } });
  if (port.nodePort !== 0 && port.hasAnyEndpoints && port.protocol !== 'SCTP') {
    add(`KUBE-NODE-PORT-${port.protocol}`, port.nodePort);
    if (port.externalPolicy === 'Local') add(`KUBE-NODE-PORT-LOCAL-${port.protocol}`, port.nodePort);
  }
  if (port.healthCheckNodePort !== 0) add('KUBE-HEALTH-CHECK-NODE-PORT', port.healthCheckNodePort);
  return elements;
}

function addressKey(protocol: IpProtocol, address: IpAddress, port: number): VirtualServerKey {
  return { kind: 'address', protocol: IP_PROTOCOLS[protocol], address, port };
}

function targetElement(
  set: SetName,
  protocol: IpProtocol,
  address: IpAddress,
  port: number,
  extra: { readonly mark?: number } = {},
): SetElement {
  return { set, element: { type: 'hash:ip,port', address, protocol, port, ...extra } };
}

function endpointMap(endpoints: readonly Endpoint[]): ReadonlyMap<string, ServerEndpoint> {
  return new Map(endpoints.map(({ key, ip, port }) => [key, { address: ip, port }]));
}

/** The element that says that a virtual server is ours; undefined for one with a mark, which tells it itself. */
export function ledgerElement({ virtual, protocol }: Pick<Server, 'virtual' | 'protocol'>): SetElement | undefined {
  const { key } = virtual;
  return key.kind === 'mark' ? undefined : targetElement('KUBE-IPVS-SERVERS', protocol, key.address, key.port);
}

/** The element of an address bound to kube-ipvs0. */
export function boundElement(ip: IpAddress): SetElement {
  return { set: 'KUBE-IPVS-IPS', element: { type: 'hash:ip', address: ip } };
}
