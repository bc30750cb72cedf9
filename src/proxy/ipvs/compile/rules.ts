import type { IpFamily } from '../../../core/index.ts';
import type { NodePlan } from '../../index.ts';
import {
  acceptForwarded,
  type ForeignRule,
  formatRule,
  MASQUERADE,
  type MarkText,
  markText,
  masqueradeMarked,
  nodePortEntry,
  podMatch,
  type RuleParts,
  refuse,
  returnUnlessSameAddress,
} from '../../rules/index.ts';
import { kernelSetName, type SetName } from './sets.ts';

/** The tables with rules of ours, in the order in which they are written: what refuses comes before what lets in. */
export const IPVS_TABLES = ['filter', 'mangle', 'nat'] as const;
/** One of them. */
export type IpvsTable = (typeof IPVS_TABLES)[number];

/** A rule of ours in a built-in chain. */
export interface Jump extends ForeignRule {
  readonly table: IpvsTable;
}

/** All rules: they depend on the node alone. Which packets they are about is in the sets. */
export interface FixedRules {
  /** By table and chain, as iptables-save prints them. */
  readonly chains: Readonly<Record<IpvsTable, ReadonlyMap<string, readonly string[]>>>;
  readonly jumps: readonly Jump[];
  /** Of those in our chains. */
  readonly counts: Readonly<Record<IpvsTable, number>>;
}

/**
 * The jumps, in the order in which missing ones are put at the head of their chain: the last ends up first. Comments are
 * part of their identity, and those of kube-proxy's IPVS mode are the same.
 */
export const JUMPS: readonly Jump[] = [
  jump('filter', 'INPUT', 'KUBE-NODE-PORT', 'kubernetes health check rules'),
  jump('filter', 'FORWARD', 'KUBE-FORWARD', 'kubernetes forwarding rules'),
  jump('filter', 'INPUT', 'KUBE-PROXY-FIREWALL', 'kube-proxy firewall rules'),
  jump('filter', 'FORWARD', 'KUBE-PROXY-FIREWALL', 'kube-proxy firewall rules'),
  jump('filter', 'INPUT', 'KUBE-IPVS-FILTER', 'kubernetes ipvs access filter'),
  jump('mangle', 'PREROUTING', 'KUBE-IPVS-OUTSIDE', 'kubernetes ipvs traffic from outside'),
  jump('mangle', 'OUTPUT', 'KUBE-IPVS-OUT-FILTER', 'kubernetes ipvs access filter'),
  jump('nat', 'OUTPUT', 'KUBE-SERVICES', 'kubernetes service portals'),
  jump('nat', 'PREROUTING', 'KUBE-SERVICES', 'kubernetes service portals'),
  jump('nat', 'POSTROUTING', 'KUBE-POSTROUTING', 'kubernetes postrouting rules'),
];

function jump(table: IpvsTable, chain: string, to: string, comment: string): Jump {
  return { table, chain, rule: formatRule({ comment, target: `-j ${to}` }) };
}

const NOT_NEW = '-m conntrack ! --ctstate NEW';
const FROM_NODE = '-m addrtype --src-type LOCAL';
const NOT_FROM_NODE = '-m addrtype ! --src-type LOCAL';

/**
 * The rules of a node. IPVS takes packets to the node's own addresses between its filter rules and its sockets (LOCAL_IN),
 * and those of its own processes even before the filter rules of OUTPUT. So for others table filter decides in INPUT, and
 * for its own processes table mangle, which comes before IPVS.
 */
export function fixedRules(family: IpFamily, node: NodePlan): FixedRules {
  const set: SetMatch = (name, directions) => `-m set --match-set ${kernelSetName(family, name)} ${directions}`;
  const mark = markText(node.masqueradeMark);
  const pods = podMatch(node.localDetector);
  const fromPod = pods ? [{ ...pods.fromPod, target: '-j RETURN' }] : [];
  const parts: Record<IpvsTable, Record<string, RuleParts[]>> = {
    filter: filterChains(family, mark, fromPod, set),
    mangle: mangleChains(family, fromPod, set),
    nat: natChains(family, node, mark, set),
  };
  const chainsOf = (table: IpvsTable) =>
    new Map(Object.entries(parts[table]).map(([name, rules]) => [name, rules.map(formatRule)] as const));
  const chains = { filter: chainsOf('filter'), mangle: chainsOf('mangle'), nat: chainsOf('nat') };
  const count = (table: IpvsTable) => [...chains[table].values()].reduce((sum, { length }) => sum + length, 0);
  return { chains, jumps: JUMPS, counts: { filter: count('filter'), mangle: count('mangle'), nat: count('nat') } };
}

/** `-m set --match-set KUBE-6-CLUSTER-IP dst,dst`: a set by its IPv4 name, and which of a packet's ends its fields are looked up by. */
type SetMatch = (name: SetName, directions: string) => string;

/** @param fromPod sends packets of this node's pods back; empty when they cannot be told from others */
function filterChains(
  family: IpFamily,
  mark: MarkText,
  fromPod: readonly RuleParts[],
  set: SetMatch,
): Record<string, RuleParts[]> {
  return {
    'KUBE-IPVS-FILTER': [
      { match: NOT_NEW, target: '-j RETURN' },
      { match: set('KUBE-REJECT', 'dst,dst'), target: '-j KUBE-IPVS-REFUSE' },
      { match: set('KUBE-DROP', 'dst,dst'), target: '-j DROP' },
      { match: set('KUBE-DROP-OUTSIDE', 'dst,dst'), target: '-j KUBE-IPVS-DROP-OUTSIDE' },
      { match: set('KUBE-LOAD-BALANCER', 'dst,dst'), target: '-j RETURN' },
      { match: set('KUBE-CLUSTER-IP', 'dst,dst'), target: '-j RETURN' },
      { match: set('KUBE-EXTERNAL-IP', 'dst,dst'), target: '-j RETURN' },
      { match: set('KUBE-EXTERNAL-IP-LOCAL', 'dst,dst'), target: '-j RETURN' },
      { match: set('KUBE-HEALTH-CHECK-NODE-PORT', 'dst'), target: '-j RETURN' },
      // What listens on the node must not be reachable at the addresses of Services.
      { match: set('KUBE-IPVS-IPS', 'dst'), target: '-j KUBE-IPVS-REFUSE' },
    ],
    'KUBE-IPVS-REFUSE': [{ protocol: 'tcp', target: refuse(family, 'tcp') }, { target: refuse(family, 'any') }],
    'KUBE-IPVS-DROP-OUTSIDE': [...fromPod, { match: FROM_NODE, target: '-j RETURN' }, { target: '-j DROP' }],
    'KUBE-PROXY-FIREWALL': [
      { match: NOT_NEW, target: '-j RETURN' },
      { match: set('KUBE-LOAD-BALANCER-FW', 'dst,dst'), target: '-j KUBE-SOURCE-RANGES-FIREWALL' },
    ],
    'KUBE-SOURCE-RANGES-FIREWALL': sourceRanges(set),
    'KUBE-NODE-PORT': [
      {
        comment: 'Kubernetes health check node port',
        match: set('KUBE-HEALTH-CHECK-NODE-PORT', 'dst'),
        target: '-j ACCEPT',
      },
    ],
    'KUBE-FORWARD': acceptForwarded(mark),
  };
}

/** @param fromPod as for `filterChains` */
function mangleChains(family: IpFamily, fromPod: readonly RuleParts[], set: SetMatch): Record<string, RuleParts[]> {
  return {
    'KUBE-IPVS-OUTSIDE': [
      { match: NOT_NEW, target: '-j RETURN' },
      ...fromPod,
      { match: FROM_NODE, target: '-j RETURN' },
      { target: `-j SET --map-set ${kernelSetName(family, 'KUBE-IPVS-MARK')} dst,dst --map-mark` },
    ],
    'KUBE-IPVS-OUT-FILTER': [
      { match: NOT_NEW, target: '-j RETURN' },
      { match: set('KUBE-DROP', 'dst,dst'), target: '-j DROP' },
      { match: set('KUBE-LOAD-BALANCER-FW', 'dst,dst'), target: '-j KUBE-SOURCE-RANGES-FIREWALL' },
    ],
    'KUBE-SOURCE-RANGES-FIREWALL': sourceRanges(set),
  };
}

function natChains(family: IpFamily, node: NodePlan, mark: MarkText, set: SetMatch): Record<string, RuleParts[]> {
  return {
    'KUBE-SERVICES': [
      { source: family === 'IPv4' ? '-s 127.0.0.0/8' : '-s ::1/128', target: '-j RETURN' },
      { match: set('KUBE-LOAD-BALANCER', 'dst,dst'), target: '-j KUBE-LOAD-BALANCER' },
      ...clusterIpRules(node, set),
      { match: set('KUBE-EXTERNAL-IP', 'dst,dst'), target: '-j KUBE-MARK-MASQ' },
      { match: `${set('KUBE-EXTERNAL-IP-LOCAL', 'dst,dst')} ${FROM_NODE}`, target: '-j KUBE-MARK-MASQ' },
      // A Service's own port may be another one's NodePort.
      { match: set('KUBE-IPVS-IPS', 'dst'), target: '-j RETURN' },
      ...nodePortEntry(family, node, { target: '-j KUBE-NODE-PORT' }),
    ],
    'KUBE-LOAD-BALANCER': [
      { match: `${set('KUBE-LOAD-BALANCER-LOCAL', 'dst,dst')} ${NOT_FROM_NODE}`, target: '-j RETURN' },
      { target: '-j KUBE-MARK-MASQ' },
    ],
    'KUBE-NODE-PORT': nodePortRules(set),
    'KUBE-MARK-MASQ': [{ target: mark.set }],
    'KUBE-POSTROUTING': [
      // A goto: what does not come from the address it goes to is done here.
      { outInterface: '! -o lo', match: mark.isUnset, target: '-g KUBE-IPVS-HAIRPIN' },
      ...masqueradeMarked(mark),
    ],
    // A pod that got its own packet as it was would answer itself directly, past the translation. It does not matter where the
    // pod is: one of another node may come to itself by way of this one.
    'KUBE-IPVS-HAIRPIN': [
      ...returnUnlessSameAddress(family),
      { comment: 'from an address to itself', target: MASQUERADE },
    ],
  };
}

function sourceRanges(set: SetMatch): RuleParts[] {
  return [
    { match: set('KUBE-LOAD-BALANCER-SOURCE-CIDR', 'dst,dst,src'), target: '-j RETURN' },
    { match: set('KUBE-LOAD-BALANCER-SOURCE-IP', 'dst,dst,src'), target: '-j RETURN' },
    { target: '-j DROP' },
  ];
}

/** Answers must come back through this node, so what does not come from a pod of it gets this node's address. */
function clusterIpRules(node: NodePlan, set: SetMatch): RuleParts[] {
  const target = '-j KUBE-MARK-MASQ';
  const pods = podMatch(node.localDetector);
  if (node.masqueradeAll) return [{ match: set('KUBE-CLUSTER-IP', 'dst,dst'), target }];
  if (pods) return [{ ...pods.notFromPod, match: set('KUBE-CLUSTER-IP', 'dst,dst'), target }];
  // The node's own connections have the ClusterIP as their source, because kube-ipvs0 has it: no answer would come back.
  return [{ match: set('KUBE-CLUSTER-IP', 'src,dst'), target }];
}

function nodePortRules(set: SetMatch): RuleParts[] {
  const protocols: { protocol: string; all: SetName; local: SetName; directions: string }[] = [
    { protocol: 'tcp', all: 'KUBE-NODE-PORT-TCP', local: 'KUBE-NODE-PORT-LOCAL-TCP', directions: 'dst' },
    { protocol: 'udp', all: 'KUBE-NODE-PORT-UDP', local: 'KUBE-NODE-PORT-LOCAL-UDP', directions: 'dst' },
    {
      protocol: 'sctp',
      all: 'KUBE-NODE-PORT-SCTP-HASH',
      local: 'KUBE-NODE-PORT-LOCAL-SCTP-HASH',
      directions: 'dst,dst',
    },
  ];
  return protocols.flatMap(({ protocol, all, local, directions }) => [
    { protocol, match: `${set(local, directions)} ${NOT_FROM_NODE}`, target: '-j RETURN' },
    { protocol, match: set(all, directions), target: '-j KUBE-MARK-MASQ' },
  ]);
}
