import { type Cidr, formatCidr, formatIp, type IpAddress } from '../core/index.ts';
import type { DnsSettings } from '../ipam/index.ts';
import { formatMac } from './mac.ts';
import { atLeast, type CniVersion } from './versions.ts';

/** An interface that ADD made or used. */
export interface ResultInterface {
  readonly name: string;
  readonly mac: Uint8Array;
  readonly mtu: number;
  /** Path of the namespace it lies in; undefined on the host. */
  readonly sandbox?: string;
}

/** An address of the pod. */
export interface ResultIp {
  /** The pod's address with the prefix length of its subnet. */
  readonly address: Cidr;
  readonly gateway: IpAddress;
}

export interface ResultRoute {
  readonly destination: Cidr;
  readonly gateway: IpAddress;
}

/** What an ADD achieved, in our terms. */
export interface Attachment {
  readonly interfaces: readonly ResultInterface[];
  /** Position in `interfaces` of the one that carries `ips`. */
  readonly podInterface: number;
  readonly ips: readonly ResultIp[];
  readonly routes: readonly ResultRoute[];
  readonly dns: DnsSettings;
}

/**
 * The result object of the configuration's version (CNI specification, section "ADD success").
 *
 * Before 1.0 each address names its IP version and `dns` is always there; from 1.1 on interfaces tell their MTU.
 */
export function resultObject(attachment: Attachment, cniVersion: CniVersion): object {
  const { interfaces, podInterface, ips, routes, dns } = attachment;
  const before1 = !atLeast(cniVersion, '1.0.0');
  return {
    cniVersion,
    interfaces: interfaces.map(({ name, mac, mtu, sandbox }) => ({
      name,
      mac: formatMac(mac),
      ...(atLeast(cniVersion, '1.1.0') && { mtu }),
      ...(sandbox !== undefined && { sandbox }),
    })),
    ips: ips.map(({ address, gateway }) => ({
      ...(before1 && { version: address.address.family === 'IPv4' ? '4' : '6' }),
      interface: podInterface,
      address: formatCidr(address),
      gateway: formatIp(gateway),
    })),
    routes: routes.map(({ destination, gateway }) => ({ dst: formatCidr(destination), gw: formatIp(gateway) })),
    ...((before1 || Object.keys(dns).length > 0) && { dns }),
  };
}
