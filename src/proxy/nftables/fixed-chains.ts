import { addressBits, type IpFamily, parseIp } from '../../core/index.ts';
import { type BaseChain, drop, type Expression, jump, lookup, payload, setMarkBits } from '../../netlink/index.ts';
import type { NodePlan } from '../index.ts';
import type { ChainBody } from './chain.ts';
import { SETS } from './names.ts';
import {
  addressIn,
  addressRegisters,
  clearMarkBits,
  commented,
  fromPods,
  isDestinationTranslated,
  isLocalAddress,
  isMarked,
  isNew,
  loadPort,
  loadVip,
  type RuleBody,
  rule,
} from './rule.ts';

/** linux/netfilter_ipv4.h: NF_IP_PRI_NAT_DST, NF_IP_PRI_NAT_SRC. */
const DSTNAT = -100;
const SRCNAT = 100;

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
    ['filter-input', { base: base('filter', 'input', 0), rules: check('check-nodeports', 'check-services') }],
    ['filter-forward', { base: base('filter', 'forward', 0), rules: check('check-services', 'check-cluster-ips') }],
    ['filter-output', { base: base('filter', 'output', 0), rules: check('check-services', 'check-cluster-ips') }],
    ['nat-postrouting', { base: base('nat', 'postrouting', SRCNAT), rules: masquerading(family, node) }],
    ['services', { rules: serviceRules(family, node) }],
    ['check-sources', { rules: [sourceRule(family)] }],
    ['check-services', { rules: [rule(loadVip(family), lookup(SETS.noEndpointServices, { to: 'verdict' }))] }],
    [
      'check-nodeports',
      { rules: [rule(nodePortAddress(family, node), loadPort(), lookup(SETS.noEndpointNodePorts, { to: 'verdict' }))] },
    ],
    ['check-cluster-ips', { rules: clusterIpRules(family, node) }],
    [REJECT_CHAIN, { rules: [rule(reject(family))] }],
  ]);
}

/** Where elements of verdict maps send what is to be refused: `reject` itself cannot be a value. */
export const REJECT_CHAIN = 'reject-packet';

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

/** A packet to a NodePort of a loopback address would not survive the way to an endpoint. */
function nodePortAddress(family: IpFamily, node: NodePlan): Expression[] {
  if (node.nodePortAddresses !== 'all') return [payload.daddr(family), lookup(SETS.nodePortIps)];
  const loopback =
    family === 'IPv4'
      ? { address: parseIp('127.0.0.0'), prefixLength: 8 }
      : { address: parseIp('::1'), prefixLength: addressBits('IPv6') };
  return addressIn('daddr', loopback, '!=');
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
    commented('no such port', rule(payload.daddr(family), lookup(SETS.clusterIps), reject(family))),
    ...serviceCidrs.map((range) => commented('not allocated', rule(addressIn('daddr', range, '=='), drop))),
  ];
}

function masquerading(family: IpFamily, { masqueradeMark }: NodePlan): RuleBody[] {
  const masquerade: Expression = { kind: 'masquerade', flags: ['random-fully'] };
  const pair = [payload.saddr(family), payload.daddr(family, addressRegisters(family))];
  return [
    // Cleared, so that a packet that passes here again (a tunnel's outer packet) is not masqueraded again.
    rule(isMarked(masqueradeMark), clearMarkBits(masqueradeMark), masquerade),
    // A pod that reached itself: it would answer itself directly, past the translation.
    rule(isDestinationTranslated(), pair, lookup(SETS.hairpin), masquerade),
  ];
}

/** ICMP port unreachable. */
function reject(family: IpFamily): Expression {
  // ICMP_PORT_UNREACH, ICMPV6_PORT_UNREACH
  return { kind: 'reject', type: 'icmp', code: family === 'IPv4' ? 3 : 4 };
}
