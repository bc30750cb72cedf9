import { type Cidr, type IpAddress, type IpFamily, NodeplaneError } from '../../core/index.ts';
import type { Attachment, RouteMode } from './underlay.ts';

/** What the operator decided about the routes to pods on other nodes. */
export interface RouteSettings {
  readonly mode: RouteMode;
  /** VXLAN network identifier, 0 to 16777215: the same on all nodes. */
  readonly vni: number;
  /** UDP port of VXLAN: the same on all nodes. */
  readonly port: number;
  /** Largest packet through the tunnel; undefined: what the underlay carries. */
  readonly mtu: number | undefined;
}

/** The VXLAN device of this node in one family, as it is to be. */
export interface TunnelDevice {
  readonly name: string;
  readonly vni: number;
  readonly port: number;
  readonly mac: Uint8Array;
  /** Where its packets come from: the node's address. */
  readonly local: IpAddress;
  /** Index of the underlay's interface. */
  readonly underlay: number;
  readonly mtu: number;
  /** Its only address: the first of the node's first pod range, which no pod gets (as flannel has it). */
  readonly address: IpAddress;
}

/** The devices' names. Each family has its own, since a VXLAN device has one local address. */
export const TUNNEL_NAMES: Readonly<Record<IpFamily, string>> = { IPv4: 'nodeplane-v4', IPv6: 'nodeplane-v6' };

/** What VXLAN adds to a packet: outer IP header, UDP 8, VXLAN 8, inner Ethernet header 14 (RFC 7348). */
const OVERHEAD: Readonly<Record<IpFamily, number>> = { IPv4: 20 + 8 + 8 + 14, IPv6: 40 + 8 + 8 + 14 };
/** RFC 8200 section 5, RFC 791. */
const LEAST_MTU: Readonly<Record<IpFamily, number>> = { IPv4: 576, IPv6: 1280 };

/**
 * The VXLAN device that the settings ask for.
 *
 * @param ranges the node's own pod ranges, at least one
 * @throws ERR_ROUTES when the underlay's packets are too small for a tunnel
 */
export function tunnelDevice(
  settings: RouteSettings,
  underlay: Attachment,
  ranges: readonly Cidr[],
  mac: Uint8Array,
): TunnelDevice {
  const { vni, port } = settings;
  const { family } = underlay.address;
  return {
    name: TUNNEL_NAMES[family],
    vni,
    port,
    mac,
    local: underlay.address,
    underlay: underlay.index,
    mtu: tunnelMtu(settings, underlay),
    address: ranges[0]!.address,
  };
}

/**
 * The largest packet that fits into one of the underlay's, and is not larger than the operator wants.
 *
 * @returns bytes
 * @throws ERR_ROUTES when the underlay's packets are too small for a tunnel
 */
export function tunnelMtu(
  { mtu: wanted }: Pick<RouteSettings, 'mtu'>,
  { mtu, name, address: { family } }: Pick<Attachment, 'mtu' | 'name' | 'address'>,
): number {
  const fits = mtu - OVERHEAD[family];
  const chosen = Math.min(fits, wanted ?? fits);
  if (chosen < LEAST_MTU[family]) {
    const message = `Cannot carry ${family} by VXLAN over "${name}": its MTU of ${mtu} leaves ${chosen} bytes, ${family} needs ${LEAST_MTU[family]}; raise the MTU`;
    throw new NodeplaneError('ERR_ROUTES', message, { facts: { interface: name, mtu, family } });
  }
  return chosen;
}
