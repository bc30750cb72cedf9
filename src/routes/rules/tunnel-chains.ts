import { IP_FAMILIES, IP_PROTOCOLS, type IpFamily } from '../../core/index.ts';
import {
  type BaseChain,
  cmp,
  counter,
  drop,
  type Expression,
  goto,
  lookup,
  meta,
  networkOrder16,
  payload,
} from '../../netlink/nftables/index.ts';
import { type ChainWithRules, clearMarkBits, FILTER, isFamily, isLocalAddress, RAW } from '../../nft/index.ts';
import type { RuleSettings } from './settings.ts';
import { addressSetName, chainRef } from './table.ts';

/** Where packets to the tunnel end that come from nobody we know. */
export const REFUSED_CHAIN = 'refused';

/**
 * Who may use the tunnel. VXLAN knows no sender: whoever can send UDP to its port can send packets to pods under any source
 * address. Addresses that are no node's are turned away; so are those that want to reach another node's tunnel through this
 * node, because they could have its address by masquerading.
 *
 * The tunnel's own packets are not tracked, hence not translated: a random source port leads to wrong checksums before Linux
 * 5.8, and with every other kernel to all packets taking the same path. Each has the mark of the packet inside; what that mark
 * asked for is done.
 */
export function tunnelChains(port: number, { masqueradeMark }: Pick<RuleSettings, 'masqueradeMark'>): ChainWithRules[] {
  return [
    hooked('tunnel-prerouting', { type: 'filter', hook: 'prerouting', priority: RAW }, (family) => [
      ...isToTunnel(port, family),
      ...isPeer('saddr', family),
      ...isLocalAddress('daddr'),
      notrack,
    ]),
    hooked('tunnel-output', { type: 'filter', hook: 'output', priority: RAW }, (family) => [
      ...isToTunnel(port, family),
      ...isPeer('daddr', family),
      ...clearMarkBits(masqueradeMark),
      notrack,
    ]),
    {
      chain: chainRef(REFUSED_CHAIN),
      // Without room for one more address the rule ends where it would add it, and the next one goes on.
      rules: [...IP_FAMILIES.map((family) => [...isFamily(family), counter, ...noteStranger(family)]), [drop]],
    },
    hooked('tunnel-input', { type: 'filter', hook: 'input', priority: FILTER }, (family) => [
      ...isToTunnel(port, family),
      ...isNoPeer(family),
      goto(REFUSED_CHAIN),
    ]),
    hooked('tunnel-forward', { type: 'filter', hook: 'forward', priority: FILTER }, (family) => [
      ...isToTunnel(port, family),
      ...isPeer('daddr', family),
      ...isNoPeer(family),
      goto(REFUSED_CHAIN),
    ]),
  ];
}

/** How many packets the chain of those turned away has counted in a family; undefined when these are no rules of it. */
export function refusedPackets(rules: readonly (readonly Expression[])[], family: IpFamily): bigint | undefined {
  const set = addressSetName('strangers', family);
  const rule = rules.find((expressions) => expressions.some((one) => one.kind === 'dynset' && one.set === set));
  return rule?.find((expression) => expression.kind === 'counter')?.packets;
}

const notrack: Expression = { kind: 'notrack' };

function hooked(name: string, base: BaseChain, ruleOf: (family: IpFamily) => Expression[]): ChainWithRules {
  return { chain: { ...chainRef(name), base }, rules: IP_FAMILIES.map(ruleOf) };
}

/** `meta nfproto FAMILY udp dport PORT`, beginning with what most packets are not. */
function isToTunnel(port: number, family: IpFamily): Expression[] {
  return [
    meta('l4proto'),
    cmp.equal(Uint8Array.of(IP_PROTOCOLS.UDP)),
    payload.dport(),
    cmp.equal(networkOrder16(port)),
    ...isFamily(family),
  ];
}

function isPeer(which: 'saddr' | 'daddr', family: IpFamily): Expression[] {
  return [payload[which](family), lookup(addressSetName('peers', family))];
}

function isNoPeer(family: IpFamily): Expression[] {
  return [
    payload.saddr(family),
    lookup(addressSetName('peers', family), { invert: true }),
    lookup(addressSetName('former-peers', family), { invert: true }),
  ];
}

function noteStranger(family: IpFamily): Expression[] {
  const set = addressSetName('strangers', family);
  return [payload.saddr(family), { kind: 'dynset', operation: 'update', set, key: 0 }];
}
