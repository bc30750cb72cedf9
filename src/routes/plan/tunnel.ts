import { type Cidr, type IpAddress, type IpFamily, NodeplaneError } from '../../core/index.ts';
import type { Attachment, RouteMode } from './underlay.ts';

/** How packets travel to nodes that are not on the link. */
export type TunnelKind = 'vxlan' | 'wireguard';

/** What the operator decided about the routes to pods on other nodes. */
export interface RouteSettings {
  readonly mode: RouteMode;
  /** What mode `auto` uses where a router is between. @default 'vxlan' */
  readonly tunnel?: TunnelKind | undefined;
  /** VXLAN network identifier, 0 to 16777215: the same on all nodes. */
  readonly vni: number;
  /** UDP port of VXLAN: the same on all nodes. */
  readonly port: number;
  /** Addresses of the cluster's pods, as far as the operator has named them. @default none */
  readonly podRanges?: readonly Cidr[] | undefined;
  /** Largest packet through the tunnel; undefined: what the underlay carries. */
  readonly mtu: number | undefined;
}

/** Undefined: there is none. */
export function tunnelKind({ mode, tunnel = 'vxlan' }: Pick<RouteSettings, 'mode' | 'tunnel'>): TunnelKind | undefined {
  if (mode === 'host-gw') return undefined;
  return mode === 'auto' ? tunnel : mode;
}

/** The device of this node that packets to pods on other nodes go through, as it is to be. */
export type TunnelDevice = VxlanDevice | WireguardDevice;

/** The VXLAN device of one family. */
export interface VxlanDevice extends CommonDevice {
  readonly kind: 'vxlan';
  readonly vni: number;
  readonly port: number;
  readonly mac: Uint8Array;
  /** Where its packets come from: the node's address. */
  readonly local: IpAddress;
  /** Index of the underlay's interface. */
  readonly underlay: number;
}

/** The WireGuard device of both families, as one of them sees it. Its key and peers are told over another conversation. */
export interface WireguardDevice extends CommonDevice {
  readonly kind: 'wireguard';
}

interface CommonDevice {
  readonly name: string;
  readonly mtu: number;
  /** Its only address of the family: the first of the node's first pod range, which no pod gets (as flannel has it). */
  readonly address: IpAddress;
}

/** The VXLAN devices' names. Each family has its own, since a VXLAN device has one local address. */
export const TUNNEL_NAMES: Readonly<Record<IpFamily, string>> = { IPv4: 'nodeplane-v4', IPv6: 'nodeplane-v6' };

/** A WireGuard device has no local address: one is enough. */
export const WIREGUARD_NAME = 'nodeplane-wg';

/** The names of all devices that we may have made for a family. */
export function deviceNames(family: IpFamily): readonly string[] {
  return [TUNNEL_NAMES[family], WIREGUARD_NAME];
}

/** What VXLAN adds to a packet: outer IP header, UDP 8, VXLAN 8, inner Ethernet header 14 (RFC 7348). */
const OVERHEAD: Readonly<Record<IpFamily, number>> = { IPv4: 20 + 8 + 8 + 14, IPv6: 40 + 8 + 8 + 14 };
/** RFC 8200 section 5, RFC 791. */
export const LEAST_MTU: Readonly<Record<IpFamily, number>> = { IPv4: 576, IPv6: 1280 };

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
): VxlanDevice {
  const { vni, port } = settings;
  const { family } = underlay.address;
  return {
    kind: 'vxlan',
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
