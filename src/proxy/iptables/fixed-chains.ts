import { addressBits, type Cidr, formatCidr, formatIp, type IpFamily, networkOf } from '../../core/index.ts';
import { type NodePlan, translatedNodePortAddresses } from '../index.ts';
import {
  type ForeignRule,
  formatRule,
  MASQUERADE,
  type RuleParts,
  returnUnlessSameAddress,
  type Table,
} from '../rules/index.ts';
import type { TreeName } from './compile.ts';
import { HAIRPIN_CHAIN } from './names.ts';

/** A rule of ours in a chain that is not: a jump from a built-in chain, as a rule. */
export interface Jump extends ForeignRule {
  readonly table: Table;
  readonly to: string;
}

/**
 * The jumps, in kube-proxy's order: a missing one is put at the head of its chain, so within a chain the last of this
 * list ends up first. Comments are part of a jump's identity.
 */
export const JUMPS: readonly Jump[] = [
  jump('filter', 'INPUT', 'KUBE-EXTERNAL-SERVICES', 'kubernetes externally-visible service portals', 'new'),
  jump('filter', 'FORWARD', 'KUBE-EXTERNAL-SERVICES', 'kubernetes externally-visible service portals', 'new'),
  jump('filter', 'INPUT', 'KUBE-NODEPORTS', 'kubernetes health check service ports'),
  jump('filter', 'FORWARD', 'KUBE-SERVICES', 'kubernetes service portals', 'new'),
  jump('filter', 'OUTPUT', 'KUBE-SERVICES', 'kubernetes service portals', 'new'),
  jump('filter', 'FORWARD', 'KUBE-FORWARD', 'kubernetes forwarding rules'),
  jump('filter', 'INPUT', 'KUBE-PROXY-FIREWALL', 'kubernetes load balancer firewall', 'new'),
  jump('filter', 'OUTPUT', 'KUBE-PROXY-FIREWALL', 'kubernetes load balancer firewall', 'new'),
  jump('filter', 'FORWARD', 'KUBE-PROXY-FIREWALL', 'kubernetes load balancer firewall', 'new'),
  jump('nat', 'OUTPUT', 'KUBE-SERVICES', 'kubernetes service portals'),
  jump('nat', 'PREROUTING', 'KUBE-SERVICES', 'kubernetes service portals'),
  jump('nat', 'POSTROUTING', 'KUBE-POSTROUTING', 'kubernetes postrouting rules'),
];

function jump(table: Table, chain: string, to: string, comment: string, connections?: 'new'): Jump {
  const target = formatRule({ comment, target: `-j ${to}` });
  return { table, chain, to, rule: connections ? `-m conntrack --ctstate NEW ${target}` : target };
}

/** kube-proxy's named counters (nfacct), which monitoring reads by these names. */
export const COUNTERS = {
  invalidDropped: 'ct_state_invalid_dropped_pkts',
  loopbackAccepted: 'localhost_nps_accepted_pkts',
} as const;

function countMatch(counter: string): string {
  return `-m nfacct --nfacct-name ${counter}`;
}

/** What the fixed chains depend on. */
export interface FixedChainOptions {
  readonly family: IpFamily;
  readonly node: NodePlan;
  /** Drop packets conntrack calls INVALID; not wanted with nf_conntrack_tcp_be_liberal. */
  readonly dropInvalid: boolean;
  /** Count into the named counters of `COUNTERS`, which exist. */
  readonly accounting: boolean;
}

/** A chain packets enter by: the roots of its trees, and the rules behind them. */
export interface EntryChain {
  readonly table: Table;
  readonly name: string;
  readonly trees: readonly TreeName[];
  readonly after: readonly string[];
}

/** The chains packets enter by. */
export function entryChains(options: FixedChainOptions): readonly EntryChain[] {
  const entry = (table: Table, name: string, parts: Partial<EntryChain>): EntryChain => ({
    table,
    name,
    trees: [],
    after: [],
    ...parts,
  });
  const mark = `0x${options.node.masqueradeMark.toString(16)}`;
  return [
    entry('filter', 'KUBE-SERVICES', { trees: ['refusedVips'] }),
    entry('filter', 'KUBE-EXTERNAL-SERVICES', { trees: ['refusedExternalVips', 'refusedNodePorts'] }),
    entry('filter', 'KUBE-NODEPORTS', { trees: ['healthChecks'] }),
    entry('filter', 'KUBE-PROXY-FIREWALL', { trees: ['restrictedVips'] }),
    entry('filter', 'KUBE-FORWARD', { after: forwardRules(mark, options) }),
    entry('nat', 'KUBE-SERVICES', { trees: ['serviceVips'], after: nodePortEntry(options) }),
    entry('nat', 'KUBE-NODEPORTS', { trees: ['nodePorts'] }),
    entry('nat', HAIRPIN_CHAIN, { after: hairpinRules(options) }),
    entry('nat', 'KUBE-MARK-MASQ', { after: [formatRule({ target: `-j MARK --set-xmark ${mark}/${mark}` })] }),
    entry('nat', 'KUBE-POSTROUTING', { after: postroutingRules(mark, options) }),
  ];
}

function forwardRules(mark: string, { dropInvalid, accounting }: FixedChainOptions): string[] {
  const invalidCount = accounting ? ` ${countMatch(COUNTERS.invalidDropped)}` : '';
  const rules: RuleParts[] = [
    // An answer conntrack does not recognise would reach the client with the endpoint's address and be reset.
    ...(dropInvalid ? [{ match: `-m conntrack --ctstate INVALID${invalidCount}`, target: '-j DROP' }] : []),
    { comment: 'kubernetes forwarding rules', match: `-m mark --mark ${mark}/${mark}`, target: '-j ACCEPT' },
    {
      comment: 'kubernetes forwarding conntrack rule',
      match: '-m conntrack --ctstate RELATED,ESTABLISHED',
      target: '-j ACCEPT',
    },
  ];
  return rules.map(formatRule);
}

function postroutingRules(mark: string, { family, node, accounting }: FixedChainOptions): string[] {
  const fromLoopback = '-m conntrack --ctstate DNAT --ctorigdst 127.0.0.0/8';
  const unmarked = `-m mark ! --mark ${mark}/${mark}`;
  const countsLoopback = accounting && family === 'IPv4' && node.loopbackNodePorts === true;
  const rules: RuleParts[] = [
    // kube-proxy counts in one more rule for each NodePort; what was sent to loopback and translated is the same.
    ...(countsLoopback ? [{ match: `${fromLoopback} ${countMatch(COUNTERS.loopbackAccepted)}` }] : []),
    ...nearSources(family, node).map((range) => ({ ...leavesRange(range), match: unmarked, target: '-j RETURN' })),
    // A goto: what does not come from the address it goes to is done here.
    {
      // Others may redirect the node's own connections to loopback; no endpoint is there.
      source: family === 'IPv4' ? '! -s 127.0.0.0/8' : '! -s ::1/128',
      match: `-m conntrack --ctstate DNAT ${unmarked}`,
      target: `-g ${HAIRPIN_CHAIN}`,
    },
    { match: unmarked, target: '-j RETURN' },
    // Cleared, so that a packet that passes here again (a tunnel's outer packet) is not masqueraded again.
    { target: `-j MARK --set-xmark ${mark}/0x0` },
    { comment: 'kubernetes service traffic requiring SNAT', target: MASQUERADE },
  ];
  return rules.map(formatRule);
}

/**
 * Where most connections come from: pods of this node, then the node itself. What goes from there to elsewhere needs no other
 * rule to be told from what goes to its sender.
 */
function nearSources(family: IpFamily, { podCidrs = [], nodeIp }: NodePlan): Cidr[] {
  const ownAddress = nodeIp ? [{ address: nodeIp, prefixLength: addressBits(family) }] : [];
  // Nothing is outside of all addresses; iptables does not even keep such a match.
  return [...podCidrs.filter(({ prefixLength }) => prefixLength > 0), ...ownAddress];
}

function leavesRange({ address, prefixLength }: Cidr): Pick<RuleParts, 'source' | 'destination'> {
  const range = formatCidr({ address: networkOf(address, prefixLength), prefixLength });
  return { source: `-s ${range}`, destination: `! -d ${range}` };
}

/**
 * Masquerades what a Service has led back to its sender: a pod that got its own packet as it was would answer itself directly,
 * past the translation. It does not matter where the pod is: one of another node may come to itself by way of this one.
 */
function hairpinRules({ family }: FixedChainOptions): string[] {
  return [...returnUnlessSameAddress(family), { comment: 'from an address to itself', target: MASQUERADE }].map(
    formatRule,
  );
}

function nodePortEntry({ family, node }: FixedChainOptions): string[] {
  const comment = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain';
  const target = '-j KUBE-NODEPORTS';
  const addresses = translatedNodePortAddresses(family, node);
  if (addresses === 'all') {
    // Loopback addresses have a stand-in: a packet to them would not survive the way to an endpoint.
    const destination = family === 'IPv4' ? '! -d 127.0.0.0/8' : '! -d ::1/128';
    return [formatRule({ destination, comment, match: '-m addrtype --dst-type LOCAL', target })];
  }
  return addresses.map((ip) =>
    formatRule({ destination: `-d ${formatIp(ip)}/${addressBits(family)}`, comment, target }),
  );
}
