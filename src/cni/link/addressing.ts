import { type Cidr, type IpAddress, type IpFamily, parseCidr } from '../../core/index.ts';
import type { DnsSettings } from '../../ipam/index.ts';
import type { NetworkConfig } from '../config/network-config.ts';
import type { ResultIp, ResultRoute } from '../protocol/result.ts';

/** An address of a pod as its interface has it, and its gateway. */
export type PodIp = Pick<ResultIp, 'address' | 'gateway'>;

/** What the address management gave a pod. */
export interface AssignedAddresses {
  readonly ips: readonly PodIp[];
  readonly routes: readonly ResultRoute[];
  /** Of the address management's own; the network's beats it. */
  readonly dns: DnsSettings;
}

/** The addresses of one pod and what goes with them. */
export interface Addressing {
  readonly ips: readonly PodIp[];
  readonly routes: readonly ResultRoute[];
  /** What the bridge must carry for this pod, with the prefix of the subnet; empty if it is no gateway. */
  readonly bridgeAddresses: readonly Cidr[];
  /** Gateways that the host's end of the pod's own link answers for: the pod is told the MAC, and need not ask. */
  readonly peerGateways: readonly IpAddress[];
  readonly families: ReadonlySet<IpFamily>;
  readonly dns: DnsSettings;
}

const DEFAULT_ROUTE: Record<IpFamily, Cidr> = { IPv4: parseCidr('0.0.0.0/0'), IPv6: parseCidr('::/0') };

/**
 * What follows from a pod's addresses and gateways in every mode.
 *
 * @param ips with the gateways that the mode has chosen
 * @param gatewayOf the gateway of a route, by that of its family
 */
export function commonAddressing(
  { isDefaultGateway, dns }: NetworkConfig,
  assigned: AssignedAddresses,
  ips: readonly PodIp[],
  gatewayOf: (route: ResultRoute, ofFamily: IpAddress | undefined) => IpAddress | undefined,
): Pick<Addressing, 'ips' | 'routes' | 'families' | 'dns'> {
  const families = new Set(ips.map(({ address }) => address.address.family));
  const gateways = new Map<IpFamily, IpAddress>();
  for (const { gateway } of ips) if (gateway && !gateways.has(gateway.family)) gateways.set(gateway.family, gateway);
  // A route of a family the pod has no address of leads nowhere, as with the reference plugin's IPv6 default route.
  const routes = assigned.routes
    .filter(({ destination }) => families.has(destination.address.family))
    .map((route) => ({ ...route, gateway: gatewayOf(route, gateways.get(route.destination.address.family)) }));
  return {
    ips,
    routes: isDefaultGateway ? withDefaultRoutes(routes, gateways) : routes,
    families,
    dns: Object.keys(dns).length > 0 ? dns : assigned.dns,
  };
}

function withDefaultRoutes(
  routes: readonly ResultRoute[],
  gateways: ReadonlyMap<IpFamily, IpAddress>,
): readonly ResultRoute[] {
  const missing = [...gateways].filter(
    ([family]) =>
      !routes.some(({ destination, gateway: via }) => destination.prefixLength === 0 && via?.family === family),
  );
  return [...routes, ...missing.map(([family, gateway]) => ({ destination: DEFAULT_ROUTE[family], gateway }))];
}
