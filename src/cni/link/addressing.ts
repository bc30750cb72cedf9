import {
  addressBits,
  type Cidr,
  cidrContains,
  type IpAddress,
  type IpFamily,
  networkOf,
  parseCidr,
  parseIp,
} from '../../core/index.ts';
import type { DnsSettings } from '../../ipam/index.ts';
import { RT_SCOPE_LINK } from '../../netlink/uapi/index.ts';
import type { NetworkConfig } from '../config/config.ts';
import type { ResultIp, ResultRoute } from '../protocol/result.ts';

/** What the address management gave a pod. */
export interface AssignedAddresses {
  readonly ips: readonly Pick<ResultIp, 'address' | 'gateway'>[];
  readonly routes: readonly ResultRoute[];
  /** Of the address management's own; the network's beats it. */
  readonly dns: DnsSettings;
}

/** The addresses of one pod and what goes with them. */
export interface Addressing {
  readonly ips: readonly Pick<ResultIp, 'address' | 'gateway'>[];
  readonly routes: readonly ResultRoute[];
  /** What the bridge must carry for this pod, with the prefix of the subnet; empty if it is no gateway. */
  readonly bridgeAddresses: readonly Cidr[];
  readonly families: ReadonlySet<IpFamily>;
  readonly dns: DnsSettings;
}

const DEFAULT_ROUTE: Record<IpFamily, Cidr> = { IPv4: parseCidr('0.0.0.0/0'), IPv6: parseCidr('::/0') };

/** The gateway of every routed pod: the host's end of its own link, and nobody else's. */
export const ROUTED_GATEWAY: Record<IpFamily, IpAddress> = { IPv4: parseIp('169.254.1.1'), IPv6: parseIp('fe80::1') };

/** Derives addresses, routes and gateways of a pod from what it was given, in the order given. */
export function addressingOf(config: NetworkConfig, assigned: AssignedAddresses): Addressing {
  const ips = assigned.ips.map(
    config.mode === 'routed'
      ? routedIp
      : ({ address, gateway }) => ({
          address,
          gateway: gateway ?? (config.isGateway ? firstOf(address) : undefined),
        }),
  );
  const families = new Set(ips.map(({ address }) => address.address.family));
  const gatewayOf = new Map<IpFamily, IpAddress>();
  for (const { gateway } of ips) if (gateway && !gatewayOf.has(gateway.family)) gatewayOf.set(gateway.family, gateway);
  return {
    ips,
    routes: routesOf(config, assigned.routes, families, gatewayOf),
    bridgeAddresses:
      config.isGateway && config.mode === 'bridge'
        ? ips.flatMap(({ address, gateway }) =>
            gateway ? [{ address: gateway, prefixLength: address.prefixLength }] : [],
          )
        : [],
    families,
    dns: Object.keys(config.dns).length > 0 ? config.dns : assigned.dns,
  };
}

/** The gateways of all ranges of the network, as addresses of the bridge; empty if it is no gateway. */
export function configuredGateways({ isGateway, mode, ipam }: NetworkConfig): Cidr[] {
  if (!isGateway || mode !== 'bridge' || ipam.kind !== 'native') return [];
  return ipam.config.rangeSets
    .flat()
    .map(({ gateway, subnet }) => ({ address: gateway, prefixLength: subnet.prefixLength }));
}

/**
 * A pod's addresses with the prefix of their subnet. A routed pod has them without: to its kernel there is no subnet.
 */
export function withSubnets({ mode, ipam }: NetworkConfig, ips: readonly ResultIp[]): readonly ResultIp[] {
  if (mode !== 'routed' || ipam.kind !== 'native') return ips;
  const ranges = ipam.config.rangeSets.flat();
  return ips.map((ip) => {
    const { address } = ip.address;
    const prefixLength = ranges.find(({ subnet }) => cidrContains(subnet, address))?.subnet.prefixLength;
    return prefixLength === undefined ? ip : { ...ip, address: { address, prefixLength } };
  });
}

function routedIp({ address: { address } }: Pick<ResultIp, 'address'>): Pick<ResultIp, 'address' | 'gateway'> {
  const { family } = address;
  return { address: { address, prefixLength: addressBits(family) }, gateway: ROUTED_GATEWAY[family] };
}

/** The address after the network's, as the reference plugin chooses a gateway when nobody names one. */
function firstOf({ address, prefixLength }: Cidr): IpAddress {
  const first = networkOf(address, prefixLength);
  first.bytes[first.bytes.length - 1]! |= 1;
  return first;
}

function routesOf(
  { mode, isDefaultGateway }: NetworkConfig,
  assigned: readonly ResultRoute[],
  families: ReadonlySet<IpFamily>,
  gatewayOf: ReadonlyMap<IpFamily, IpAddress>,
): readonly ResultRoute[] {
  // A route of a family the pod has no address of leads nowhere, as with the reference plugin's IPv6 default route.
  const onLink: ResultRoute[] =
    mode === 'routed' && gatewayOf.has('IPv4')
      ? [{ destination: { address: ROUTED_GATEWAY.IPv4, prefixLength: 32 }, scope: RT_SCOPE_LINK }]
      : [];
  const ofIpam = assigned
    .filter(({ destination }) => families.has(destination.address.family))
    .map((route) => {
      const gateway = gatewayOf.get(route.destination.address.family);
      // A routed pod reaches nobody but its gateway directly.
      return { ...route, gateway: mode === 'routed' ? gateway : (route.gateway ?? gateway) };
    });
  const routes: ResultRoute[] = [...onLink, ...ofIpam];
  if (!isDefaultGateway) return routes;
  for (const [family, gateway] of gatewayOf) {
    const has = routes.some(
      ({ destination, gateway: via }) => destination.prefixLength === 0 && via?.family === family,
    );
    if (!has) routes.push({ destination: DEFAULT_ROUTE[family], gateway });
  }
  return routes;
}
