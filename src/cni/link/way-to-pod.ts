import { formatIp, type IpAddress } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { lookUpRoute } from '../../netlink/route/index.ts';
import type { Addressing } from './addressing.ts';
import type { Connection } from './attaching.ts';

/**
 * A sentence for each address of a pod that the node does not reach by the link that it is connected to: a more specific route of
 * somebody else is in the way, as the blackhole that Calico leaves for its block, or a policy rule.
 *
 * @param host a NETLINK_ROUTE socket of the node
 */
export function obstructedWays(
  host: Netlink,
  { ips, bridgeAddresses }: Pick<Addressing, 'ips' | 'bridgeAddresses'>,
  { hostLink, bridge, gateway }: Connection,
): string[] {
  const link = bridge ? gateway : hostLink;
  // The routes of a VRF are elsewhere.
  if (!link || gateway?.master) return [];
  // Of a bridge without an address of the family others are the pods' gateway.
  const hasRoute = ({ family }: IpAddress) => !bridge || bridgeAddresses.some((one) => one.address.family === family);
  return ips
    .map(({ address }) => address.address)
    .filter(hasRoute)
    .flatMap((destination) => {
      const answer = lookUpRoute(host, { destination });
      if (answer.kind === 'route' && answer.route.outInterface === link.index) return [];
      const where = answer.kind === 'route' ? 'elsewhere' : `nowhere (${answer.errno})`;
      const text = formatIp(destination);
      const look = `ip${destination.family === 'IPv6' ? ' -6' : ''} route show match ${text}`;
      return [
        `What the node sends to the pod's address ${text} does not go to "${link.name}" but ${where}: a route of somebody else is in the way (${look}); remove it if its network is gone`,
      ];
    });
}
