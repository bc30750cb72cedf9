import { addressBits, cidrEquals, formatCidr, formatIp } from '../../core/index.ts';
import { type Link, listAddresses, listRoutes } from '../../netlink/route/index.ts';
import { RT_TABLE_MAIN } from '../../netlink/uapi/index.ts';
import type { Checking } from '../link/checking.ts';
import { HOST_GATEWAY } from './routed-addressing.ts';

/** CHECK of what `connectRouted` made: the node's routes to the pod, and the gateway's IPv6 address. */
export function checkRouted({ host, ips, differ }: Checking, { index, name }: Link): void {
  const routes = listRoutes(host, { table: RT_TABLE_MAIN });
  for (const { address } of ips) {
    const wanted = { address: address.address, prefixLength: addressBits(address.address.family) };
    // Of several the kernel lists the one first that packets take.
    const found = routes.find(({ destination }) => cidrEquals(destination, wanted));
    if (found?.outInterface !== index)
      differ(`the node has no route to ${formatIp(address.address)} through "${name}"`);
  }
  if (!ips.some(({ address }) => address.address.family === 'IPv6')) return;
  if (!listAddresses(host, { index }).some((has) => cidrEquals(has, HOST_GATEWAY))) {
    differ(`"${name}" lacks the gateway's address ${formatCidr(HOST_GATEWAY)}`);
  }
}
