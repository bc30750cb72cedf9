import { addressBits, formatIp, type IpAddress, type IpFamily, systemClock } from '../../core/index.ts';
import type { Link, Neighbour } from '../../netlink/route/index.ts';
import {
  IFF_LOWER_UP,
  NUD_DELAY,
  NUD_FAILED,
  NUD_INCOMPLETE,
  NUD_NOARP,
  NUD_PERMANENT,
  NUD_PROBE,
  NUD_REACHABLE,
  NUD_STALE,
} from '../../netlink/uapi/index.ts';
import type { WireguardPeer } from '../../netlink/wireguard/index.ts';
import { DEVICE_ALIAS } from '../kernel/route-kernel.ts';
import { SESSION_SECONDS } from '../wireguard/session.ts';
import type { KernelFacts } from './kernel-facts.ts';
import type { KernelPeer, Reach } from './kernel-peer.ts';

/** The way to a node, behind its routes. */
type Path = Pick<KernelPeer, 'mode' | 'address' | 'reach'>;
type PathReader = (link: Link, gateway: IpAddress, facts: KernelFacts) => Path;

/** How to follow the way through our devices, by IFLA_INFO_KIND. */
const TUNNELS: Readonly<Record<string, PathReader>> = { vxlan: vxlanPath };

/** Follows the way that a route's link and gateway name, as far as the kernel knows it. */
export function pathOf(link: Link | undefined, gateway: IpAddress, facts: KernelFacts): Path {
  if (!link) return { mode: 'direct', address: gateway, reach: no('its link is gone') };
  const tunnel = link.alias === DEVICE_ALIAS ? TUNNELS[link.kind] : undefined;
  return (tunnel ?? directPath)(link, gateway, facts);
}

function directPath(link: Link, gateway: IpAddress, facts: KernelFacts): Path {
  return { mode: 'direct', address: gateway, reach: onLink(link, gateway, facts) };
}

function vxlanPath(link: Link, gateway: IpAddress, facts: KernelFacts): Path {
  const neighbour = facts.neighbour(link.index, gateway);
  const address = neighbour && facts.remoteOf(link.index, neighbour.lladdr);
  return { mode: 'tunnel', address, reach: vxlanReach(link, neighbour, address, facts) };
}

/**
 * The way through our WireGuard device, which knows the node by its key. Where the node was heard from last is the kernel's
 * business; that it is known by its address we have told the device.
 *
 * @param peer to which the device sends what the routes are for; undefined: it has none
 * @param now seconds since 1970
 */
export function wireguardPath(
  link: Link,
  peer: WireguardPeer | undefined,
  family: IpFamily,
  now = systemClock.wallTime() / 1000,
): Path {
  const isNode = ({ address, prefixLength }: WireguardPeer['allowedIps'][number]) =>
    address.family === family && prefixLength === addressBits(family);
  return { mode: 'wireguard', address: peer?.allowedIps.find(isNode)?.address, reach: wireguardReach(link, peer, now) };
}

function wireguardReach(link: Link, peer: WireguardPeer | undefined, now: number): Reach {
  if (!link.up) return no(`${link.name} is down`);
  if (!peer) return no(`no peer of ${link.name} has these addresses`);
  if (!peer.endpoint) return no(`${link.name} does not know where the peer is`);
  if (peer.lastHandshake === undefined) return { verdict: 'unknown', because: 'no handshake yet' };
  const age = Math.max(0, Math.round(now - peer.lastHandshake));
  return { verdict: age < SESSION_SECONDS ? 'yes' : 'unknown', because: `last handshake ${age} s ago` };
}

function vxlanReach(
  link: Link,
  neighbour: Neighbour | undefined,
  address: IpAddress | undefined,
  facts: KernelFacts,
): Reach {
  if (!link.up) return no(`${link.name} is down`);
  if (!neighbour || neighbour.state !== NUD_PERMANENT) return no(`no permanent neighbour on ${link.name}`);
  if (!address) return no(`no FDB entry on ${link.name}`);
  const underlay = facts.link(link.vxlan?.link ?? 0);
  return underlay ? onLink(underlay, address, facts) : no(`the link below ${link.name} is gone`);
}

/** Whether somebody on a link can be sent to. For who is behind a router the link knows nothing, which is no fault. */
function onLink(link: Link, ip: IpAddress, facts: KernelFacts): Reach {
  if (!link.up) return no(`${link.name} is down`);
  if ((link.flags & IFF_LOWER_UP) === 0) return no(`${link.name} has no carrier`);
  const state = facts.neighbour(link.index, ip)?.state ?? 0;
  const name = STATES.get(state);
  if (state === NUD_FAILED) return no(`${formatIp(ip)} does not answer on ${link.name}: neighbour ${name}`);
  if (name === undefined || state === NUD_INCOMPLETE)
    return { verdict: 'unknown', because: name ? `neighbour ${name}` : 'no neighbour' };
  return { verdict: 'yes', because: `neighbour ${name}` };
}

/** As `ip neighbour` names them. */
const STATES: ReadonlyMap<number, string> = new Map([
  [NUD_INCOMPLETE, 'INCOMPLETE'],
  [NUD_REACHABLE, 'REACHABLE'],
  [NUD_STALE, 'STALE'],
  [NUD_DELAY, 'DELAY'],
  [NUD_PROBE, 'PROBE'],
  [NUD_FAILED, 'FAILED'],
  [NUD_NOARP, 'NOARP'],
  [NUD_PERMANENT, 'PERMANENT'],
]);

function no(because: string): Reach {
  return { verdict: 'no', because };
}
