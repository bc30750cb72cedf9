import { readFileSync } from 'node:fs';
import { cidrContains, formatIp, type IpAddress, type IpFamily } from '../../core/index.ts';
import type { InterfaceAddress } from '../../netlink/route/index.ts';
import { IFA_F_SECONDARY, RTN_LOCAL } from '../../netlink/uapi/index.ts';
import type { NodeView } from './node-view.ts';

const SCOPE_UNIVERSE = 0;

/**
 * The address that the kernel masquerades with.
 *
 * @param out index of the link they leave by
 * @param to where they go
 * @returns undefined: there is none, or it is not known
 */
export function masqueradeSource(out: number, to: IpAddress, node: NodeView): IpAddress | undefined {
  const answer = node.route({ destination: to });
  const route = answer.kind === 'route' ? answer.route : undefined;
  if (to.family === 'IPv4') return primaryAddress(out, route?.gateway ?? to, node);
  // ipv6_dev_get_saddr, net/ipv6/addrconf.c: the same address before all others, those of the link before those of other links.
  if (route?.type === RTN_LOCAL) return node.isOwnAddress(formatIp(to)) ? to : undefined;
  const own = globalAddresses(out, 'IPv6', node);
  if (own.length === 1) return own[0]!.address;
  // The kernel chooses the source of a route in the same way, if it names none.
  const matched = node.route({ destination: to, matched: true });
  return matched.kind === 'route' && matched.route.source === undefined ? route?.source : undefined;
}

/** The addresses of a link that others may know this node by, in the kernel's order. */
export function globalAddresses(of: number, family: IpFamily, node: NodeView): readonly InterfaceAddress[] {
  return node.addresses.filter(
    ({ address, index, scope }) => address.family === family && index === of && scope === SCOPE_UNIVERSE,
  );
}

/**
 * Of IPv4: inet_select_addr with RT_SCOPE_UNIVERSE, net/ipv4/devinet.c. Of the link they leave by, the one whose subnet
 * has the next hop, else its first; where that link has none, as lo, the first of all links.
 *
 * @returns undefined: there is none, or which link is the first is not known
 */
function primaryAddress(out: number, nextHop: IpAddress, node: NodeView): IpAddress | undefined {
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
