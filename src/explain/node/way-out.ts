import { cidrContains, formatIp, type IpAddress, ipEquals, shellWord, systemClock } from '../../core/index.ts';
import { closing } from '../../netlink/index.ts';
import type { Link, Neighbour, NeighbourFamily, Route } from '../../netlink/route/index.ts';
import { IFF_LOWER_UP, NUD_FAILED, NUD_INCOMPLETE } from '../../netlink/uapi/index.ts';
import { getWireguard, openWireguard, type WireguardPeer } from '../../netlink/wireguard/index.ts';

/** Why nothing arrives at the next machine, as far as it is certain. */
export interface Broken {
  readonly what: 'link' | 'neighbour' | 'tunnel';
  readonly text: string;
  /** A command line that shows it. */
  readonly show: string;
}

/** A tunnel's own packets: UDP between two nodes. */
export interface Outer {
  readonly local: IpAddress | undefined;
  readonly remote: IpAddress;
  readonly port: number;
  readonly link: Link;
}

/** How packets leave this node towards one address, as far as the kernel knows without sending any. */
export interface WayOut {
  readonly link: Link;
  readonly kind: 'direct' | 'vxlan' | 'wireguard';
  /** The machine that is sent to: the next hop, or the other end of the tunnel. Undefined: the kernel does not know it. */
  readonly next: IpAddress | undefined;
  /** The route's own next hop; undefined: it has none. Of VXLAN the inner address of the other end, mostly. */
  readonly gateway: IpAddress | undefined;
  /** The largest packet that is taken, in bytes. */
  readonly mtu: number;
  /** What the kernel knows of the next machine, in words: `neighbour REACHABLE`, `last handshake 12 s ago`. */
  readonly state: string;
  readonly broken: Broken | undefined;
  /** The next machine is being asked for, and has not answered so far. */
  readonly unresolved: boolean;
  /** Of tunnels. */
  readonly outer: Outer | undefined;
}

/** What following a way asks of the kernel. */
export interface WayFacts {
  neighbours(family: NeighbourFamily, index: number): readonly Neighbour[];
  link(index: number): Link | undefined;
  /** The kernel's own way to an address; undefined: none. */
  route(to: IpAddress): Route | undefined;
}

/** All bytes zero: where a VXLAN device sends what has no entry of its own. */
const DEFAULT_ENTRY = '000000000000';
/** A neighbour that did not answer so lately is taken to be gone. */
const LATELY_SECONDS = 5;
/** UDP port of VXLAN where the device does not say. */
const VXLAN_PORT = 8472;

/**
 * Follows a route out of this node: the link, the next hop, the tunnel's other end, and the neighbours of each.
 *
 * @returns undefined when the route has no link, or several (multipath)
 */
export function wayOut(to: IpAddress, route: Route, facts: WayFacts): WayOut | undefined {
  const link = facts.link(route.outInterface);
  if (!link) return undefined;
  const mtu = Math.min(route.mtu ?? link.mtu, link.mtu);
  const base = {
    link,
    mtu,
    gateway: route.gateway,
    next: undefined,
    outer: undefined,
    state: 'not known',
    unresolved: false,
  } as const;
  const down = whyDown(link);
  if (down) return { ...base, kind: 'direct', broken: down };
  const hop = route.gateway ?? to;
  if (link.vxlan) return { ...base, ...throughVxlan(link, hop, link.vxlan, facts) };
  if (link.kind === 'wireguard') return { ...base, ...throughWireguard(link, to, facts) };
  return { ...base, kind: 'direct', next: hop, ...onLink(link, hop, facts) };
}

type Followed = Pick<WayOut, 'kind' | 'next' | 'state' | 'broken' | 'outer'> & Partial<Pick<WayOut, 'unresolved'>>;

function throughVxlan(link: Link, hop: IpAddress, vxlan: NonNullable<Link['vxlan']>, facts: WayFacts): Followed {
  const own = shellWord(link.name);
  const show = `ip neigh show dev ${own}; bridge fdb show dev ${own}`;
  const lost = (text: string): Followed => ({
    kind: 'vxlan',
    next: undefined,
    outer: undefined,
    state: 'broken',
    broken: { what: 'tunnel', text, show },
  });
  const entry = neighbourOf(link, hop, facts);
  if (hasFailed(entry) === 'lately') return lost(`${link.name} has no neighbour ${formatIp(hop)} (FAILED)`);
  // It would be asked for by a broadcast through the tunnel: nothing is known before.
  if (!entry || entry.lladdr.length === 0) {
    const state = hasFailed(entry) ? failedBefore(entry!, hop, link) : `no neighbour ${formatIp(hop)} yet`;
    return { kind: 'vxlan', next: undefined, outer: undefined, state, broken: undefined };
  }
  const mac = Buffer.from(entry.lladdr).toString('hex');
  const fdb = new Map(
    facts
      .neighbours('bridge', link.index)
      .flatMap(({ lladdr, ip }) => (ip ? [[Buffer.from(lladdr).toString('hex'), ip]] : [])),
  );
  const remote = fdb.get(mac) ?? fdb.get(DEFAULT_ENTRY) ?? vxlan.remote;
  if (!remote) return lost(`${link.name} has no FDB entry for ${colons(mac)}, the MAC of ${formatIp(hop)}`);
  const route = facts.route(remote);
  const below = facts.link(vxlan.link) ?? (route && facts.link(route.outInterface));
  if (!route || !below) return lost(`there is no route to ${formatIp(remote)}, the other end of ${link.name}`);
  const down = whyDown(below);
  const outer = { local: vxlan.local ?? route.source, remote, port: vxlan.port || VXLAN_PORT, link: below };
  const seen = down
    ? { state: 'link down', broken: down }
    : onLink(below, route.gateway ?? remote, facts, `, the way of ${link.name}`);
  return { kind: 'vxlan', next: remote, outer, ...seen };
}

function throughWireguard(link: Link, to: IpAddress, facts: WayFacts): Followed {
  const { netlink, family } = openWireguard();
  const device = closing(netlink, () => getWireguard(netlink, family, link.index));
  const peer = mostSpecific(device.peers, to);
  const show = `wg show ${shellWord(link.name)}`;
  const lost = (text: string): Followed => ({
    kind: 'wireguard',
    next: undefined,
    outer: undefined,
    state: 'broken',
    broken: { what: 'tunnel', text, show },
  });
  if (!peer) return lost(`no peer of ${link.name} has ${formatIp(to)} among its addresses`);
  if (!peer.endpoint) return lost(`${link.name} does not know where the peer of ${formatIp(to)} is`);
  const { ip, port } = peer.endpoint;
  const route = facts.route(ip);
  const below = route && facts.link(route.outInterface);
  const now = Math.round(systemClock.wallTime() / 1000);
  const age = peer.lastHandshake === undefined ? undefined : Math.max(0, now - peer.lastHandshake);
  return {
    kind: 'wireguard',
    next: ip,
    state: age === undefined ? 'no handshake yet' : `last handshake ${age} s ago`,
    broken: undefined,
    // Marked packets may go by rules that an unmarked one does not meet.
    outer: below && device.fwmark === 0 ? { local: route.source, remote: ip, port, link: below } : undefined,
  };
}

/** As the device chooses: the longest prefix. */
function mostSpecific(peers: readonly WireguardPeer[], to: IpAddress): WireguardPeer | undefined {
  let best: { readonly peer: WireguardPeer; readonly length: number } | undefined;
  for (const peer of peers) {
    for (const range of peer.allowedIps) {
      if (range.address.family !== to.family || !cidrContains(range, to)) continue;
      if (!best || range.prefixLength > best.length) best = { peer, length: range.prefixLength };
    }
  }
  return best?.peer;
}

function whyDown(link: Link): Broken | undefined {
  const show = `ip link show ${shellWord(link.name)}`;
  if (!link.up) return { what: 'link', text: `${link.name} is down`, show };
  if ((link.flags & IFF_LOWER_UP) === 0) return { what: 'link', text: `${link.name} has no carrier`, show };
  return undefined;
}

function onLink(link: Link, hop: IpAddress, facts: WayFacts, of = ''): Pick<WayOut, 'state' | 'broken' | 'unresolved'> {
  const text = formatIp(hop);
  const entry = neighbourOf(link, hop, facts);
  const failed = hasFailed(entry);
  if (failed === 'before') return { state: failedBefore(entry!, hop, link), broken: undefined, unresolved: false };
  if (failed) {
    const broken: Broken = {
      what: 'neighbour',
      text: `nobody answers for ${text} on ${link.name}${of} (neighbour FAILED)`,
      show: `ip neigh show ${text}`,
    };
    return { state: 'neighbour FAILED', broken, unresolved: false };
  }
  const unresolved = entry !== undefined && (entry.state & NUD_INCOMPLETE) !== 0;
  const isKnown = entry !== undefined && entry.lladdr.length > 0 && !unresolved;
  const state = isKnown ? `${text} answers on ${link.name}` : `${text} was not asked for lately`;
  return { state, broken: undefined, unresolved };
}

/**
 * Whether nobody answered for a neighbour when this node asked last. That one is asked for anew by the next packet (__neigh_event_send,
 * net/core/neighbour.c): what was so lately is taken to be so still, what was so before is not.
 */
function hasFailed(entry: Neighbour | undefined): 'lately' | 'before' | undefined {
  if (!entry || (entry.state & NUD_FAILED) === 0) return undefined;
  return (entry.changedSecondsAgo ?? 0) < LATELY_SECONDS ? 'lately' : 'before';
}

function failedBefore({ changedSecondsAgo = 0 }: Neighbour, hop: IpAddress, { name }: Link): string {
  return `nobody answered for ${formatIp(hop)} on ${name} when asked ${Math.floor(changedSecondsAgo)} s ago`;
}

function neighbourOf(link: Link, ip: IpAddress, { neighbours }: WayFacts): Neighbour | undefined {
  return neighbours(ip.family, link.index).find((one) => one.ip !== undefined && ipEquals(one.ip, ip));
}

function colons(mac: string): string {
  return mac.replace(/..(?=.)/g, '$&:');
}
