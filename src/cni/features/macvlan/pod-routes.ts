import { addressBits, type Cidr, cidrEquals, type IpAddress, ipEquals } from '../../../core/index.ts';
import type { InterfaceAddress } from '../../../netlink/route/index.ts';
import { RT_SCOPE_UNIVERSE } from '../../../netlink/uapi/index.ts';
import type { ResultRoute } from '../../protocol/result.ts';

/**
 * What a pod with a second interface has to reach through its first one whatever becomes of its default route: the addresses
 * of the link below, because a macvlan and its master do not hear each other (kernel: drivers/net/macvlan.c), and the
 * networks of the cluster.
 *
 * @param gateways those of the pod network; a family without one gets no routes
 * @param ofMaster addresses of the link below; those of the link alone (fe80::) stay as they are
 */
export function routesByPodNetwork(
  gateways: readonly IpAddress[],
  ofMaster: readonly Pick<InterfaceAddress, 'address' | 'scope'>[],
  networks: readonly Cidr[],
): ResultRoute[] {
  const addresses = ofMaster
    .filter(({ scope }) => scope === RT_SCOPE_UNIVERSE)
    .map(({ address }) => ({ address, prefixLength: addressBits(address.family) }));
  const routes: ResultRoute[] = [];
  for (const destination of [...addresses, ...networks]) {
    const { address } = destination;
    const gateway = gateways.find(({ family }) => family === address.family);
    // In a network whose gateway the master's address is, the pod is its neighbour already.
    if (!gateway || ipEquals(gateway, address)) continue;
    if (!routes.some((route) => cidrEquals(route.destination, destination))) routes.push({ destination, gateway });
  }
  return routes;
}
