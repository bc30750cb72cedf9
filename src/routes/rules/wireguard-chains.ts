import { IP_FAMILIES, IP_PROTOCOLS } from '../../core/index.ts';
import {
  type BaseChain,
  cmp,
  type Expression,
  interfaceName,
  lookup,
  meta,
  networkOrder16,
  payload,
} from '../../netlink/nftables/index.ts';
import { type ChainWithRules, isFamily, isLocalAddress, RAW } from '../../nft/index.ts';
import { WIREGUARD_NAME } from '../plan/tunnel.ts';
import { AFTER_OTHERS } from './masquerade-chains.ts';
import { addressSetName, RULES_TABLE } from './table.ts';

/**
 * What WireGuard's packets need. Nobody is turned away here: WireGuard knows its senders by their keys, wherever they are.
 *
 * Its own packets between nodes are not tracked, hence not translated by anybody: another source port would be taken for
 * another place of the node. Their mark is that of the device, not that of the packet inside (wg_socket_send_skb_to_peer).
 *
 * What this node itself sends into the tunnel carries the address of the tunnel's device. A process that spoke to a ClusterIP
 * has chosen the node's address, and the answer to that would come outside of the tunnel, in the clear.
 *
 * @param port of this node's device, from which it sends as well
 */
export function wireguardChains(port: number): ChainWithRules[] {
  return [
    hooked(
      'wireguard-prerouting',
      { type: 'filter', hook: 'prerouting', priority: RAW },
      IP_FAMILIES.map((family) => [
        ...isUdp(payload.dport(), port),
        ...isFamily(family),
        payload.saddr(family),
        lookup(addressSetName('peers', family)),
        ...isLocalAddress('daddr'),
        notrack,
      ]),
    ),
    hooked(
      'wireguard-output',
      { type: 'filter', hook: 'output', priority: RAW },
      IP_FAMILIES.map((family) => [
        ...isUdp(payload.sport(), port),
        ...isFamily(family),
        payload.daddr(family),
        lookup(addressSetName('peers', family)),
        notrack,
      ]),
    ),
    hooked('wireguard-source', { type: 'nat', hook: 'postrouting', priority: AFTER_OTHERS }, [
      [
        meta('oifname'),
        cmp.equal(interfaceName(WIREGUARD_NAME)),
        ...isLocalAddress('saddr'),
        { kind: 'masquerade', flags: ['random-fully'] },
      ],
    ]),
  ];
}

const notrack: Expression = { kind: 'notrack' };

/** `meta l4proto udp PORT-EXPRESSION PORT`, beginning with what most packets are not. */
function isUdp(which: Expression, port: number): Expression[] {
  return [meta('l4proto'), cmp.equal(Uint8Array.of(IP_PROTOCOLS.UDP)), which, cmp.equal(networkOrder16(port))];
}

function hooked(name: string, base: BaseChain, rules: Expression[][]): ChainWithRules {
  const { family, name: table } = RULES_TABLE;
  return { chain: { kind: 'chain', family, table, name, base }, rules };
}
