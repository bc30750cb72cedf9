import { type Cidr, formatCidr, ipValue, networkOf, spanOfCidr } from '../../core/index.ts';
import { withNetlink } from '../../netlink/index.ts';
import { deleteAddress, listAddresses, listLinks } from '../../netlink/route/index.ts';
import { NETLINK_ROUTE } from '../../netlink/uapi/index.ts';

/** What carries the gateways of pods: a bridge, or with a VLAN of its own the link above it. */
const GATEWAY_LINKS: ReadonlySet<string | undefined> = new Set(['bridge', 'vlan']);

/**
 * Removes the gateways of ranges that this node has no more from the links of its pods. With such an address comes the kernel's
 * own route for the range, which beats that to the node which has it now.
 *
 * @returns the addresses removed, as text
 * @throws KernelError
 */
export function removeGateways(isGone: (range: Cidr) => boolean): string[] {
  return withNetlink(NETLINK_ROUTE, (host) => {
    const links = new Set(listLinks(host).flatMap(({ index, kind }) => (GATEWAY_LINKS.has(kind) ? index : [])));
    const gone = listAddresses(host).filter(({ index, address, prefixLength }) => {
      const range = { address: networkOf(address, prefixLength), prefixLength };
      return links.has(index) && ipValue(address) === spanOfCidr(range).first + 1n && isGone(range);
    });
    for (const { index, address, prefixLength } of gone) host.execute(deleteAddress({ index, address, prefixLength }));
    return gone.map(formatCidr);
  });
}
