import { type Cidr, formatCidr, formatIp, formatMac, type IpAddress } from '../../core/index.ts';
import { type DnsSettings, ROUTE_NUMBERS, type RouteNumbers } from '../../ipam/index.ts';
import { atLeast, type CniVersion } from './versions.ts';

/** An interface that ADD made or used. */
export interface ResultInterface {
  readonly name: string;
  /** Undefined when another plugin did not say. */
  readonly mac?: Uint8Array | undefined;
  readonly mtu?: number | undefined;
  /** Path of the namespace it lies in; undefined on the host. */
  readonly sandbox?: string | undefined;
  /** Of other plugins. */
  readonly socketPath?: string | undefined;
  /** Of other plugins. */
  readonly pciID?: string | undefined;
}

/** An address of the pod. */
export interface ResultIp {
  /** The pod's address with the prefix length of its subnet. */
  readonly address: Cidr;
  readonly gateway: IpAddress | undefined;
  /** Position of the interface that carries it; undefined when it is not said. */
  readonly interface?: number | undefined;
}

/** A route in the pod. */
export interface ResultRoute extends RouteNumbers {
  readonly destination: Cidr;
  /** Undefined: the destination is on the link, or what the pod's gateway is for. */
  readonly gateway?: IpAddress | undefined;
}

/** What an ADD achieved, in our terms. */
export interface CniResult {
  readonly interfaces: readonly ResultInterface[];
  readonly ips: readonly ResultIp[];
  readonly routes: readonly ResultRoute[];
  readonly dns: DnsSettings;
}

/**
 * The result object of the configuration's version (CNI specification, section "ADD success").
 *
 * Before 0.3 there is room for one address per family, with the routes of that family, and for no interface. Before 1.0
 * each address names its IP version and `dns` is always there; from 1.1 on interfaces and routes say more.
 */
export function resultObject(result: CniResult, cniVersion: CniVersion): object {
  if (!atLeast(cniVersion, '0.3.0')) return oldResultObject(result, cniVersion);
  const { interfaces, ips, routes, dns } = result;
  const before1 = !atLeast(cniVersion, '1.0.0');
  const from11 = atLeast(cniVersion, '1.1.0');
  return {
    cniVersion,
    interfaces: interfaces.map(({ name, mac, mtu, sandbox, socketPath, pciID }) => ({
      name,
      ...(mac && { mac: formatMac(mac) }),
      ...(sandbox !== undefined && { sandbox }),
      ...(from11 && { mtu, socketPath, pciID }),
    })),
    ips: ips.map(({ address, gateway, interface: carrier }) => ({
      ...(before1 && { version: address.address.family === 'IPv4' ? '4' : '6' }),
      ...(carrier !== undefined && { interface: carrier }),
      address: formatCidr(address),
      ...(gateway && { gateway: formatIp(gateway) }),
    })),
    routes: routes.map((route) => ({
      ...plainRoute(route),
      ...(from11 && Object.fromEntries(ROUTE_NUMBERS.map((key) => [key, route[key]]))),
    })),
    ...((before1 || Object.keys(dns).length > 0) && { dns }),
  };
}

function oldResultObject({ ips, routes, dns }: CniResult, cniVersion: CniVersion): object {
  const ofFamily = (family: 'IPv4' | 'IPv6') => {
    const ip = ips.find(({ address }) => address.address.family === family);
    if (!ip) return undefined;
    return {
      ip: formatCidr(ip.address),
      ...(ip.gateway && { gateway: formatIp(ip.gateway) }),
      routes: routes.filter(({ destination }) => destination.address.family === family).map(plainRoute),
    };
  };
  const [ip4, ip6] = [ofFamily('IPv4'), ofFamily('IPv6')];
  return { cniVersion, ...(ip4 && { ip4 }), ...(ip6 && { ip6 }), dns };
}

function plainRoute({ destination, gateway }: ResultRoute): object {
  return { dst: formatCidr(destination), ...(gateway && { gw: formatIp(gateway) }) };
}
