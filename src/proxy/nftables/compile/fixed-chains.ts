import type { IpFamily } from '../../../core/index.ts';
import {
  type BaseChain,
  drop,
  type Expression,
  goto,
  jump,
  lookup,
  payload,
  setMarkBits,
} from '../../../netlink/nftables/index.ts';
import {
  addressIn,
  addressRegisters,
  clearMarkBits,
  DSTNAT,
  FILTER,
  inLoopback,
  isConfirmed,
  isDestinationTranslated,
  isLocalAddress,
  isMarked,
  isNew,
  rejections,
  SRCNAT,
} from '../../../nft/index.ts';
import type { NodePlan } from '../../index.ts';
import type { ChainBody } from './chain.ts';
import { HAIRPIN_CHAIN, returnUnlessSameAddress } from './hairpin.ts';
import { SETS } from './names.ts';
import { commented, fromPods, loadPort, loadVip, type RuleBody, rule } from './rule.ts';

/** The chains that do not depend on Services, but only on the node. */
export function fixedChains(family: IpFamily, node: NodePlan): ReadonlyMap<string, ChainBody> {
  const check = (...chains: string[]) => chains.map((chain) => rule(isNew(), jump(chain)));
  return new Map<string, ChainBody>([
    // Before translation, where the address the client asked for is still in the packet.
    ['filter-prerouting', { base: base('filter', 'prerouting', DSTNAT - 10), rules: check('check-sources') }],
    ['filter-output-pre-dnat', { base: base('filter', 'output', DSTNAT - 10), rules: check('check-sources') }],
    ['nat-prerouting', { base: base('nat', 'prerouting', DSTNAT), rules: [rule(jump('services'))] }],
    ['nat-output', { base: base('nat', 'output', DSTNAT), rules: [rule(jump('services'))] }],
    // What still has the address of a Service has not been translated. Refused here because a packet cannot be answered
    // in prerouting on every kernel.
    ['filter-input', { base: base('filter', 'input', FILTER), rules: check('check-nodeports', 'check-services') }],
    [
      'filter-forward',
      { base: base('filter', 'forward', FILTER), rules: check('check-services', 'check-cluster-ips') },
    ],
    ['filter-output', { base: base('filter', 'output', FILTER), rules: check('check-services', 'check-cluster-ips') }],
    ['nat-postrouting', { base: base('nat', 'postrouting', SRCNAT), rules: masquerading(family, node) }],
    ['services', { rules: serviceRules(family, node) }],
    ['check-sources', { rules: [sourceRule(family)] }],
    ['check-services', { rules: [rule(loadVip(family), lookup(SETS.noEndpointServices, { to: 'verdict' }))] }],
    [
      'check-nodeports',
      { rules: [rule(nodePortAddress(family, node), loadPort(), lookup(SETS.noEndpointNodePorts, { to: 'verdict' }))] },
    ],
    ['check-cluster-ips', { rules: clusterIpRules(family, node) }],
    [UNSERVED_CHAIN, { rules: UNSERVED_RULES }],
    [REJECT_CHAIN, { rules: rejectRules(family) }],
    [HAIRPIN_CHAIN, { rules: hairpinRules(family) }],
  ]);
}

/** Where elements of verdict maps send what is to be refused: `reject` itself cannot be a value. */
export const REJECT_CHAIN = 'reject-packet';

/** Packets to a port of a cluster IP that were not translated. */
const UNSERVED_CHAIN = 'unserved-port';

/**
 * A connection that was begun before its Service was there is led past translation until the agent has conntrack forget it. It gets
 * through by a later packet of the client's, and would end with a refusal.
 */
const UNSERVED_RULES = [
  commented('begun before the Service was there', rule(isConfirmed(), drop)),
  commented('no such port', rule(goto(REJECT_CHAIN))),
];

function base(type: BaseChain['type'], hook: BaseChain['hook'], priority: number): BaseChain {
  return { type, hook, priority, policy: 'accept' };
}

function serviceRules(family: IpFamily, node: NodePlan): RuleBody[] {
  const toClusterIp = [payload.daddr(family), lookup(SETS.clusterIps)];
  const mark = setMarkBits(node.masqueradeMark);
  const outside = fromPods(node.localDetector, '!=');
  // Answers must come back through this node, so what does not come from a pod of it gets this node's address.
  const masquerade = node.masqueradeAll
    ? [commented('masquerade all traffic to cluster IPs', rule(toClusterIp, mark))]
    : outside
      ? [commented('masquerade traffic to cluster IPs that is not from pods', rule(outside, toClusterIp, mark))]
      : [];
  return [
    ...masquerade,
    rule(loadVip(family), lookup(SETS.services, { to: 'verdict' })),
    rule(
      ...(node.nodePortAddresses === 'all' ? [isLocalAddress('daddr')] : []),
      nodePortAddress(family, node),
      loadPort(),
      lookup(SETS.nodePorts, { to: 'verdict' }),
    ),
  ];
}

/** Loopback addresses have a stand-in: a packet to them would not survive the way to an endpoint. */
function nodePortAddress(family: IpFamily, node: NodePlan): Expression[] {
  if (node.nodePortAddresses !== 'all') return [payload.daddr(family), lookup(SETS.nodePortIps)];
  return inLoopback('daddr', family, '!=');
}

function sourceRule(family: IpFamily): RuleBody {
  const source = addressRegisters(family) + 2;
  return rule(
    loadVip(family),
    lookup(SETS.restrictedVips),
    loadVip(family),
    payload.saddr(family, source),
    lookup(SETS.allowedSources, { invert: true }),
    drop,
  );
}

function clusterIpRules(family: IpFamily, { serviceCidrs = [] }: NodePlan): RuleBody[] {
  return [
    rule(payload.daddr(family), lookup(SETS.clusterIps), goto(UNSERVED_CHAIN)),
    ...serviceCidrs.map((range) => commented('not allocated', rule(addressIn('daddr', range, '=='), drop))),
  ];
}

const MASQUERADE: Expression = { kind: 'masquerade', flags: ['random-fully'] };

function masquerading(family: IpFamily, { masqueradeMark }: NodePlan): RuleBody[] {
  return [
    // Cleared, so that a packet that passes here again (a tunnel's outer packet) is not masqueraded again.
    rule(isMarked(masqueradeMark), clearMarkBits(masqueradeMark), MASQUERADE),
    // Others may redirect the node's own connections to loopback; no endpoint is there.
    rule(isDestinationTranslated(), inLoopback('saddr', family, '!='), goto(HAIRPIN_CHAIN)),
  ];
}

/**
 * Masquerades what a Service has led back to its sender: a pod that got its own packet as it was would answer itself directly,
 * past the translation. It does not matter where the pod is: one of another node may come to itself by way of this one.
 */
function hairpinRules(family: IpFamily): RuleBody[] {
  return [...returnUnlessSameAddress(family), commented('from an address to itself', rule(MASQUERADE))];
}

/** What `REJECT_CHAIN` does. */
export function rejectRules(family: IpFamily): RuleBody[] {
  return rejections(family).map((expressions) => rule(...expressions));
}
