import { readFileSync } from 'node:fs';
import { cidrContains, type IpAddress } from '../../core/index.ts';
import type { InterfaceAddress } from '../../netlink/route/index.ts';
import { IFA_F_SECONDARY } from '../../netlink/uapi/index.ts';
import type { NodeView } from './node-view.ts';

const SCOPE_UNIVERSE = 0;

/**
 * The address that the kernel masquerades packets of IPv4 with: inet_select_addr with RT_SCOPE_UNIVERSE, net/ipv4/devinet.c. Of the link
 * they leave by, the one whose subnet has the next hop, else its first; where that link has none, as lo, the first of all links.
 *
 * @param out index of the link they leave by
 * @returns undefined: there is none, or which link is the first is not known
 */
export function masqueradeSource(out: number, nextHop: IpAddress, node: NodeView): IpAddress | undefined {
  const all = node.addresses.filter(isPrimary);
  const own = all.filter(({ index }) => index === out);
  const near =
    own.find(({ address, peer = address, prefixLength }) => cidrContains({ address: peer, prefixLength }, nextHop)) ??
    own[0];
  if (near) return near.address;
  const others = all.filter(({ index }) => !isInVrf(index, node));
  if (new Set(others.map(({ index }) => index)).size < 2) return others[0]?.address;
  const order = linkOrder();
  if (!others.every(({ index }) => order.includes(index))) return undefined;
  return others.reduce((a, b) => (order.indexOf(b.index) < order.indexOf(a.index) ? b : a)).address;
}

function isPrimary({ address, scope, flags }: InterfaceAddress): boolean {
  return address.family === 'IPv4' && scope === SCOPE_UNIVERSE && (flags & IFA_F_SECONDARY) === 0;
}

function isInVrf(index: number, node: NodeView): boolean {
  return node.link(node.link(index)?.master ?? 0)?.kind === 'vrf';
}

/**
 * The indices of links that are up, in the order of the kernel's own list of links (for_each_netdev), which netlink does not give: as
 * igmp_mc_seq_show prints them, net/ipv4/igmp.c.
 */
function linkOrder(): readonly number[] {
  try {
    const text = readFileSync('/proc/thread-self/net/igmp', 'utf8');
    return [...text.matchAll(/^(\d+)\t/gm)].map(([, index]) => Number(index));
  } catch {
    return [];
  }
}
