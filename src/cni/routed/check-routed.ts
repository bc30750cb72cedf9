import { addressBits, formatIp, ipEquals } from '../../core/index.ts';
import { type Link, listAddresses, listRoutes } from '../../netlink/route/index.ts';
import { RT_TABLE_MAIN } from '../../netlink/uapi/index.ts';
import type { Checking } from '../link/checking.ts';
import { ROUTED_GATEWAY } from './routed-addressing.ts';

/** CHECK of what `connectRouted` made: the node's routes to the pod, and the gateway's IPv6 address. */
export function checkRouted({ host, ips, differ }: Checking, { index, name }: Link): void {
  const routes = listRoutes(host, { table: RT_TABLE_MAIN });
  for (const { address } of ips) {
    const bits = addressBits(address.address.family);
    const found = routes.find(
      ({ destination }) => destination.prefixLength === bits && ipEquals(destination.address, address.address),
    );
    if (found?.outInterface !== index)
      differ(`the node has no route to ${formatIp(address.address)} through "${name}"`);
  }
  if (!ips.some(({ address }) => address.address.family === 'IPv6')) return;
  if (!listAddresses(host, { index }).some(({ address }) => ipEquals(address, ROUTED_GATEWAY.IPv6))) {
    differ(`"${name}" lacks the gateway's address ${formatIp(ROUTED_GATEWAY.IPv6)}`);
  }
}
