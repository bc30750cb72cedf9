import { type Cidr, type IpFamily, NodeplaneError } from '../../core/index.ts';
import type { PeerPlan } from '../plan/planner.ts';
import { LEAST_MTU, WIREGUARD_NAME, type WireguardDevice } from '../plan/tunnel.ts';
import type { Attachment } from '../plan/underlay.ts';

/** The one WireGuard device, as the routes of a family see it. */
export interface SharedTunnel {
  /** This node has pods of the family: what is sent to them has to fit. */
  joins(family: IpFamily): void;
  /** This node's public key, and the largest packet that the device takes. Throws ERR_ROUTES when it cannot be used. */
  ground(underlay: Attachment): { readonly publicKey: Uint8Array; readonly mtu: number };
  /** The plans of a family, all of them, and the index of the device, which is there. */
  replaced(family: IpFamily, index: number, plans: ReadonlyMap<string, PeerPlan>): void;
  /** Plans of a family that changed; undefined: there is none any more. */
  changed(family: IpFamily, plans: ReadonlyMap<string, PeerPlan | undefined>): void;
}

/**
 * What WireGuard adds to a packet: outer IP header, UDP 8, its own header 16, tag 16
 * (https://www.wireguard.com/papers/wireguard.pdf, 5.4.6).
 */
const OVERHEAD: Readonly<Record<IpFamily, number>> = { IPv4: 20 + 8 + 16 + 16, IPv6: 40 + 8 + 16 + 16 };

/** The device that a family asks for. @param ranges the node's own pod ranges, at least one */
export function wireguardDevice(ranges: readonly Cidr[], mtu: number): WireguardDevice {
  return { kind: 'wireguard', name: WIREGUARD_NAME, mtu, address: ranges[0]!.address };
}

/**
 * The largest packet through the device that fits into one of each underlay's, and is not larger than the operator wants.
 *
 * @param underlays by the family of this node's pods
 * @param family whose packets have to fit
 * @throws ERR_ROUTES when they do not
 */
export function wireguardMtu(
  underlays: ReadonlyMap<IpFamily, Attachment>,
  family: IpFamily,
  wanted: number | undefined,
): number {
  const fits = [...underlays].map(([outer, { mtu }]) => mtu - OVERHEAD[outer]);
  const chosen = Math.min(...fits, wanted ?? Number.POSITIVE_INFINITY);
  if (chosen >= LEAST_MTU[family]) return chosen;
  const links = [...underlays.values()].map(({ name, mtu }) => `"${name}" (MTU ${mtu})`).join(' and ');
  const message = `Cannot carry ${family} by WireGuard over ${links}: that leaves ${chosen} bytes, ${family} needs ${LEAST_MTU[family]}; raise the MTU`;
  throw new NodeplaneError('ERR_ROUTES', message, { facts: { mtu: chosen, family } });
}
