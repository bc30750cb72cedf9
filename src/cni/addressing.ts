import { type Cidr, type IpAddress, type IpFamily, parseCidr } from '../core/index.ts';
import type { PlannedReservation } from '../ipam/index.ts';
import type { NetworkConfig } from './config.ts';
import type { ResultIp, ResultRoute } from './result.ts';

/** The addresses of one pod and what goes with them. */
export interface Addressing {
  readonly ips: readonly ResultIp[];
  readonly routes: readonly ResultRoute[];
  /** What the bridge must carry for this pod, with the prefix of the subnet; empty if it is no gateway. */
  readonly bridgeAddresses: readonly Cidr[];
  readonly families: ReadonlySet<IpFamily>;
}

const DEFAULT_ROUTE: Record<IpFamily, Cidr> = { IPv4: parseCidr('0.0.0.0/0'), IPv6: parseCidr('::/0') };

/** Derives addresses, routes and gateways of a pod from its reservations, in the order of the range sets. */
export function addressingOf(config: NetworkConfig, reservations: readonly PlannedReservation[]): Addressing {
  const ips = reservations.map(({ address, range }) => ({
    address: { address, prefixLength: range.subnet.prefixLength },
    gateway: range.gateway,
  }));
  const gatewayOf = new Map<IpFamily, IpAddress>();
  for (const { gateway } of ips) if (!gatewayOf.has(gateway.family)) gatewayOf.set(gateway.family, gateway);
  return {
    ips,
    routes: routesOf(config, gatewayOf),
    bridgeAddresses: config.isGateway
      ? ips.map(({ address, gateway }) => ({ address: gateway, prefixLength: address.prefixLength }))
      : [],
    families: new Set(gatewayOf.keys()),
  };
}

/** The gateways of all ranges of the network, as addresses of the bridge; empty if it is no gateway. */
export function configuredGateways({ isGateway, ipam }: NetworkConfig): Cidr[] {
  if (!isGateway || !ipam) return [];
  return ipam.rangeSets.flat().map(({ gateway, subnet }) => ({ address: gateway, prefixLength: subnet.prefixLength }));
}

function routesOf(
  { ipam, isDefaultGateway }: NetworkConfig,
  gatewayOf: ReadonlyMap<IpFamily, IpAddress>,
): readonly ResultRoute[] {
  const routes: ResultRoute[] = [];
  for (const { destination, gateway } of ipam?.routes ?? []) {
    const via = gateway ?? gatewayOf.get(destination.address.family);
    // A route of a family the pod has no address of leads nowhere, as with the reference plugin's IPv6 default route.
    if (via && gatewayOf.has(destination.address.family)) routes.push({ destination, gateway: via });
  }
  if (!isDefaultGateway) return routes;
  for (const [family, gateway] of gatewayOf) {
    const has = routes.some((route) => route.destination.prefixLength === 0 && route.gateway.family === family);
    if (!has) routes.push({ destination: DEFAULT_ROUTE[family], gateway });
  }
  return routes;
}
