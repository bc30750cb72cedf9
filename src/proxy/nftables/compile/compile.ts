import type { Cidr, IpAddress, Steps } from '../../../core/index.ts';
import { goto, type Verdict as NftVerdict, setMarkBits } from '../../../netlink/nftables/index.ts';
import { isLocalAddress } from '../../../nft/index.ts';
import type { Endpoint, NodePlan, PortClaim, ServicePortPlan, Verdict } from '../../index.ts';
import { stickyChain } from './balance.ts';
import type { ChainBody } from './chain.ts';
import { REJECT_CHAIN } from './fixed-chains.ts';
import { keyText, portKey, protocolField, vipKey } from './keys.ts';
import { type BalanceKind, balanceChainName, type FixedSetName, SETS, type StickyNames, stickyNames } from './names.ts';
import { fromPods, rule } from './rule.ts';
import { type SetBody, stickySets } from './schema.ts';
import { slotCapacity } from './slots.ts';
import { allowedSources, rangeKeys } from './source-ranges.ts';

/** An element that says something about a destination. */
export interface Entry {
  readonly set: FixedSetName;
  readonly key: Uint8Array;
  readonly keyEnd?: Uint8Array;
  readonly verdict?: NftVerdict;
}

/** Endpoints to be numbered in a map: the elements `PREFIX . SLOT : ENDPOINT`. */
export interface Group {
  readonly set: string;
  readonly prefix: Uint8Array;
  readonly endpoints: readonly Endpoint[];
  /** Before the endpoint in the value. @default nothing */
  readonly lead?: Uint8Array;
  /** The map that remembers clients of these endpoints, and of no others. */
  readonly affinity?: string;
}

/** What a Service port wants to happen at one of its destinations. */
export interface Claim extends PortClaim {
  /** The destination; unique among those of a port. */
  readonly id: string;
  readonly entries: readonly Entry[];
  readonly groups: readonly Group[];
  /** On the entries: whose they are. */
  readonly comment: string;
}

/** What one Service port is in nftables. */
export interface CompiledPort {
  readonly key: string;
  /** Of its plan, for messages. */
  readonly name: string;
  readonly claims: readonly Claim[];
  /** Keys of sets that several ports may want; there as long as one does. */
  readonly shared: readonly { readonly set: FixedSetName; readonly key: Uint8Array }[];
  /** Of its own; only with ClientIP affinity. */
  readonly chains: ReadonlyMap<string, ChainBody>;
  readonly sets: ReadonlyMap<string, SetBody>;
  /** In maps of its own. */
  readonly groups: readonly Group[];
}

/** The kernel keeps 128 bytes of a comment and what goes with it; Kubernetes allows longer names. */
const MAX_COMMENT = 120;

function commentOf({ name }: ServicePortPlan, what = ''): string {
  const [begin, end] = [name, what && ` ${what}`];
  if (Buffer.byteLength(begin + end) <= MAX_COMMENT) return begin + end;
  let kept = begin.slice(0, MAX_COMMENT);
  while (Buffer.byteLength(`${kept}...${end}`) > MAX_COMMENT) kept = kept.slice(0, -1);
  return `${kept}...${end}`;
}

const DROP: NftVerdict = { kind: 'drop' };

/** Compiles one Service port. Pure; the result depends on nothing but the two plans. */
export function* compilePort(port: ServicePortPlan, node: NodePlan): Steps<CompiledPort> {
  const sticky = port.affinitySeconds > 0 ? stickyNames(port) : undefined;
  const { chains, sets, groups } = sticky ? compileSticky(port, node, sticky) : NOTHING_OF_ITS_OWN;
  const claims = yield* compileClaims(port, node, sticky);
  // Without spreading one into the other, which takes five times as long.
  const shared = [{ set: SETS.clusterIps, key: port.clusterIp.bytes }];
  return { key: port.key, name: port.name, claims, shared, chains, sets, groups };
}

const NOTHING_OF_ITS_OWN: Pick<CompiledPort, 'chains' | 'sets' | 'groups'> = {
  chains: new Map(),
  sets: new Map(),
  groups: [],
};

function* compileClaims(port: ServicePortPlan, node: NodePlan, sticky: StickyNames | undefined): Steps<Claim[]> {
  const { clusterIp, protocol } = port;
  const target = internalTarget(port, sticky);
  const parts = target ? { target } : { refusal: port.internalVerdict };
  const internal = compileClaim(port, 'vip', 'cluster IP', vipKey(clusterIp, protocol, port.port), parts);
  if (!isReachableFromOutside(port)) return [internal];

  // Of two claims for one destination the first counts: an external IP that is a load-balancer VIP too, say.
  const claims = new Map([[internal.id, internal]]);
  const add = (...what: Tail<Parameters<typeof compileClaim>>) => {
    const claim = compileClaim(port, ...what);
    if (!claims.has(claim.id)) claims.set(claim.id, claim);
  };
  const vip = (ip: IpAddress) => vipKey(ip, protocol, port.port);
  const external: ClaimParts = {
    ...(port.hasAnyEndpoints && { target: externalTarget(port, sticky) }),
    ...(port.externalVerdict !== 'forward' && { refusal: port.externalVerdict }),
  };
  for (const ip of port.externalIps) {
    add('vip', 'external IP', vip(ip), external);
    yield;
  }
  const sources = port.hasAnyEndpoints && port.sourceRanges.length > 0 ? allowedSources(port, node) : undefined;
  for (const ip of port.loadBalancerVips) {
    add('vip', 'loadbalancer IP', vip(ip), sources ? { ...external, sources } : external);
    yield;
  }
  if (port.nodePort !== 0) add('nodePort', 'node port', portKey(protocol, port.nodePort), external);
  return [...claims.values()];
}

type Tail<T extends readonly unknown[]> = T extends readonly [unknown, ...infer Rest] ? Rest : never;

function compileClaim(
  port: ServicePortPlan,
  kind: keyof typeof KINDS,
  what: string,
  key: Uint8Array,
  parts: ClaimParts,
): Claim {
  const { entries, groups } = claimElements(kind, key, parts);
  return { owner: port.key, id: `${kind} ${keyText(key)}`, entries, groups, comment: commentOf(port, what) };
}

function internalTarget(port: ServicePortPlan, sticky: StickyNames | undefined): Target | undefined {
  if (port.internalVerdict !== 'forward') return undefined;
  const isLocal = port.internalPolicy === 'Local';
  if (sticky) return { kind: 'own', chain: (isLocal ? sticky.local : sticky.cluster).chain };
  return { kind: 'endpoints', masquerade: false, endpoints: isLocal ? port.localEndpoints : port.clusterEndpoints };
}

function externalTarget(port: ServicePortPlan, sticky: StickyNames | undefined): Target {
  const { clusterEndpoints: endpoints, localEndpoints } = port;
  if (sticky) return { kind: 'own', chain: sticky.external };
  if (port.externalPolicy === 'Cluster') return { kind: 'endpoints', masquerade: true, endpoints };
  return { kind: 'local', endpoints, localEndpoints };
}

function isReachableFromOutside({ nodePort, externalIps, loadBalancerVips }: ServicePortPlan): boolean {
  return nodePort !== 0 || externalIps.length > 0 || loadBalancerVips.length > 0;
}

/** Where a destination leads. */
type Target =
  | { readonly kind: 'own'; readonly chain: string }
  | { readonly kind: 'endpoints'; readonly masquerade: boolean; readonly endpoints: readonly Endpoint[] }
  /** `endpoints` for pods and the node itself. */
  | { readonly kind: 'local'; readonly endpoints: readonly Endpoint[]; readonly localEndpoints: readonly Endpoint[] };

interface ClaimParts {
  readonly target?: Target;
  /** What happens to packets the target does not take. */
  readonly refusal?: Verdict;
  /** Who may use it at all. @default everybody */
  readonly sources?: readonly Cidr[];
}

/** The names of the same things for addresses and for NodePorts. */
const KINDS = {
  vip: {
    dispatch: SETS.services,
    refused: SETS.noEndpointServices,
    endpoints: SETS.endpoints,
    localEndpoints: SETS.localEndpoints,
    shortCircuit: SETS.shortCircuit,
    chains: { plain: 'endpoints', masquerading: 'external', local: 'local' },
  },
  nodePort: {
    dispatch: SETS.nodePorts,
    refused: SETS.noEndpointNodePorts,
    endpoints: SETS.nodePortEndpoints,
    localEndpoints: SETS.nodePortLocalEndpoints,
    shortCircuit: SETS.nodePortShortCircuit,
    chains: { plain: 'nodeport-endpoints', masquerading: 'nodeport', local: 'nodeport-local' },
  },
} as const;

function claimElements(kind: keyof typeof KINDS, key: Uint8Array, { target, refusal, sources }: ClaimParts) {
  const names = KINDS[kind];
  const entries: Entry[] = [];
  const groups: Group[] = [];
  const group = (set: string, endpoints: readonly Endpoint[]) => {
    if (endpoints.length > 0) groups.push({ set, prefix: key, endpoints });
  };
  switch (target?.kind) {
    case 'own':
      entries.push({ set: names.dispatch, key, verdict: gotoChain(target.chain) });
      break;
    case 'endpoints': {
      const { masquerading, plain } = names.chains;
      const chain = balanceVerdict(target.masquerade ? masquerading : plain, target.endpoints.length);
      entries.push({ set: names.dispatch, key, verdict: chain });
      group(names.endpoints, target.endpoints);
      break;
    }
    case 'local': {
      const { endpoints, localEndpoints } = target;
      entries.push({ set: names.dispatch, key, verdict: balanceVerdict(names.chains.local, localEndpoints.length) });
      if (endpoints.length > 0) {
        const verdict = balanceVerdict(names.chains.plain, endpoints.length);
        entries.push({ set: names.shortCircuit, key, verdict });
      }
      group(names.endpoints, endpoints);
      group(names.localEndpoints, localEndpoints);
      break;
    }
  }
  if (refusal === 'reject') entries.push({ set: names.refused, key, verdict: gotoChain(REJECT_CHAIN) });
  if (refusal === 'drop') entries.push({ set: names.refused, key, verdict: DROP });
  if (sources) {
    entries.push({ set: SETS.restrictedVips, key });
    for (const range of sources) entries.push({ set: SETS.allowedSources, ...rangeKeys(key, range) });
  }
  return { entries: [...entries], groups: [...groups] };
}

/** The same few for all Services, so that they are made, and compared, once. */
const verdicts = new Map<string, NftVerdict>();

function balanceVerdict(kind: BalanceKind, endpoints: number): NftVerdict {
  return gotoChain(balanceChainName(kind, slotCapacity(endpoints)), true);
}

function gotoChain(chain: string, common = false): NftVerdict {
  let verdict = verdicts.get(chain);
  if (!verdict) {
    verdict = { kind: 'goto', chain };
    if (common) verdicts.set(chain, verdict);
  }
  return verdict;
}

function compileSticky(
  port: ServicePortPlan,
  node: NodePlan,
  names: StickyNames,
): Pick<CompiledPort, 'chains' | 'sets' | 'groups'> {
  const { family } = port.clusterIp;
  const chains = new Map<string, ChainBody>();
  const sets = new Map<string, SetBody>();
  const groups: Group[] = [];
  const comment = commentOf(port);
  const balance = (maps: StickyNames['cluster'], endpoints: readonly Endpoint[]) => {
    if (endpoints.length === 0) return;
    for (const [name, body] of stickySets(family, maps, port)) sets.set(name, body);
    groups.push({ set: maps.endpoints, prefix: NO_BYTES, endpoints, affinity: maps.affinity });
    groups.push({ set: maps.choices, prefix: NO_BYTES, endpoints, lead: protocolField(port.protocol) });
    chains.set(maps.chain, { ...stickyChain(family, port.protocol, maps, slotCapacity(endpoints.length)), comment });
  };
  balance(names.cluster, port.clusterEndpoints);
  balance(names.local, port.localEndpoints);
  if (port.hasAnyEndpoints && isReachableFromOutside(port))
    chains.set(names.external, { rules: stickyExternal(port, node, names), comment });
  return { chains, sets, groups };
}

const NO_BYTES = new Uint8Array(0);

function stickyExternal(port: ServicePortPlan, node: NodePlan, names: StickyNames) {
  const mark = setMarkBits(node.masqueradeMark);
  const toCluster = port.clusterEndpoints.length > 0 ? [goto(names.cluster.chain)] : [];
  if (port.externalPolicy === 'Cluster') return [rule(mark, toCluster)];
  const pods = fromPods(node.localDetector, '==');
  return [
    ...(pods && toCluster.length > 0 ? [rule(pods, toCluster)] : []),
    ...(toCluster.length > 0 ? [rule(isLocalAddress('saddr'), mark, toCluster)] : []),
    ...(port.localEndpoints.length > 0 ? [rule(goto(names.local.chain))] : []),
  ];
}
