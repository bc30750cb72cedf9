import { addressBits, type Cidr, formatCidr, type IpFamily, networkOf } from '../../core/index.ts';
import type { NodePlan } from '../index.ts';
import {
  acceptForwarded,
  type ForeignRule,
  formatRule,
  MASQUERADE,
  type MarkText,
  markText,
  masqueradeMarked,
  nodePortEntry,
  type RuleParts,
  returnUnlessSameAddress,
  type Table,
} from '../rules/index.ts';
import type { TreeName } from './compile.ts';
import { HAIRPIN_CHAIN } from './names.ts';

/** A rule of ours in a chain that is not: a jump from a built-in chain, as a rule. */
export interface Jump extends ForeignRule {
  readonly table: Table;
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
  return { table, chain, rule: connections ? `-m conntrack --ctstate NEW ${target}` : target };
}

/** kube-proxy's named counters (nfacct), which monitoring reads by these names. */
export const COUNTERS = {
  invalidDropped: 'ct_state_invalid_dropped_pkts',
  loopbackAccepted: 'localhost_nps_accepted_pkts',
} as const;

function countMatch(counter: string): string {
  return `-m nfacct --nfacct-name ${counter}`;
}

const TO_NODE_PORTS = {
  comment: 'kubernetes service nodeports; NOTE: this must be the last rule in this chain',
  target: '-j KUBE-NODEPORTS',
};

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
  const { family, node } = options;
  const mark = markText(node.masqueradeMark);
  return [
    entry('filter', 'KUBE-SERVICES', { trees: ['refusedVips'] }),
    entry('filter', 'KUBE-EXTERNAL-SERVICES', { trees: ['refusedExternalVips', 'refusedNodePorts'] }),
    entry('filter', 'KUBE-NODEPORTS', { trees: ['healthChecks'] }),
    entry('filter', 'KUBE-PROXY-FIREWALL', { trees: ['restrictedVips'] }),
    entry('filter', 'KUBE-FORWARD', { after: forwardRules(mark, options) }),
    entry('nat', 'KUBE-SERVICES', {
      trees: ['serviceVips'],
      after: nodePortEntry(family, node, TO_NODE_PORTS).map(formatRule),
    }),
    entry('nat', 'KUBE-NODEPORTS', { trees: ['nodePorts'] }),
    entry('nat', HAIRPIN_CHAIN, { after: hairpinRules(family) }),
    entry('nat', 'KUBE-MARK-MASQ', { after: [formatRule({ target: mark.set })] }),
    entry('nat', 'KUBE-POSTROUTING', { after: postroutingRules(mark, options) }),
  ];
}

function forwardRules(mark: MarkText, { dropInvalid, accounting }: FixedChainOptions): string[] {
  const invalidCount = accounting ? ` ${countMatch(COUNTERS.invalidDropped)}` : '';
  const rules: RuleParts[] = [
    // An answer conntrack does not recognise would reach the client with the endpoint's address and be reset.
    ...(dropInvalid ? [{ match: `-m conntrack --ctstate INVALID${invalidCount}`, target: '-j DROP' }] : []),
    ...acceptForwarded(mark),
  ];
  return rules.map(formatRule);
}

function postroutingRules(mark: MarkText, { family, node, accounting }: FixedChainOptions): string[] {
  const fromLoopback = '-m conntrack --ctstate DNAT --ctorigdst 127.0.0.0/8';
  const countsLoopback = accounting && family === 'IPv4' && node.loopbackNodePorts === true;
  const rules: RuleParts[] = [
    // kube-proxy counts in one more rule for each NodePort; what was sent to loopback and translated is the same.
    ...(countsLoopback ? [{ match: `${fromLoopback} ${countMatch(COUNTERS.loopbackAccepted)}` }] : []),
    ...nearSources(family, node).map((range) => ({ ...leavesRange(range), match: mark.isUnset, target: '-j RETURN' })),
    // A goto: what does not come from the address it goes to is done here.
    {
      // Others may redirect the node's own connections to loopback; no endpoint is there.
      source: family === 'IPv4' ? '! -s 127.0.0.0/8' : '! -s ::1/128',
      match: `-m conntrack --ctstate DNAT ${mark.isUnset}`,
      target: `-g ${HAIRPIN_CHAIN}`,
    },
    ...masqueradeMarked(mark),
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
function hairpinRules(family: IpFamily): string[] {
  return [...returnUnlessSameAddress(family), { comment: 'from an address to itself', target: MASQUERADE }].map(
    formatRule,
  );
}
