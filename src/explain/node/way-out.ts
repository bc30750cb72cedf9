import { cidrContains, formatIp, type IpAddress, shellWord, systemClock } from '../../core/index.ts';
import { closing } from '../../netlink/index.ts';
import type { Link, Neighbour, NextHop, Route } from '../../netlink/route/index.ts';
import { IFF_LOWER_UP } from '../../netlink/uapi/index.ts';
import { getWireguard, openWireguard, type WireguardPeer } from '../../netlink/wireguard/index.ts';
import { isUnanswered, type Neighbours, unansweredText } from './neighbours.ts';

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
  /** The neighbour that is asked for, and has not answered so far. */
  readonly unanswered: Neighbour | undefined;
  /** Of tunnels. */
  readonly outer: Outer | undefined;
  /** By which other next hops of the same route packets may leave as well: each connection gets one of them. */
  readonly others: readonly WayOut[];
}

/** What following a way asks of the kernel. */
export interface WayFacts {
  readonly neighbours: Pick<Neighbours, 'on' | 'find' | 'isSilent'>;
  link(index: number): Link | undefined;
  /** The kernel's own way to an address; undefined: none. */
  route(to: IpAddress): Route | undefined;
}

/** All bytes zero: where a VXLAN device sends what has no entry of its own. */
const DEFAULT_ENTRY = '000000000000';
/** UDP port of VXLAN where the device does not say. */
const VXLAN_PORT = 8472;

/**
 * Follows a route with several next hops. One that is not known to be broken stands for all.
 *
 * @returns undefined when none has a link
 */
export function wayOutBySeveral(
  to: IpAddress,
  route: Route,
  hops: readonly NextHop[],
  facts: WayFacts,
): WayOut | undefined {
  const ways = hops.flatMap((hop) => wayOut(to, { ...route, ...hop }, facts) ?? []);
  const first = ways.find(({ broken }) => !broken) ?? ways[0];
  return first && { ...first, others: ways.filter((one) => one !== first) };
}

/**
 * Follows a route out of this node: the link, the next hop, the tunnel's other end, and the neighbours of each.
 *
 * @returns undefined when the route has no link
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
    unanswered: undefined,
    others: [],
  } as const;
  const down = whyDown(link);
  if (down) return { ...base, kind: 'direct', broken: down };
  const hop = route.gateway ?? to;
  if (link.vxlan) return { ...base, ...throughVxlan(link, hop, link.vxlan, facts) };
  if (link.kind === 'wireguard') return { ...base, ...throughWireguard(link, to, facts) };
  return { ...base, kind: 'direct', next: hop, ...onLink(link, hop, facts) };
}

type Followed = Pick<WayOut, 'kind' | 'next' | 'state' | 'broken' | 'outer'> & Partial<Pick<WayOut, 'unanswered'>>;

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
  const fdb = new Map(
    facts.neighbours
      .on('bridge', link.index)
      .flatMap(({ lladdr, ip }) => (ip ? [[Buffer.from(lladdr).toString('hex'), ip]] : [])),
  );
  const byDefault = fdb.get(DEFAULT_ENTRY) ?? vxlan.remote;
  const entry = facts.neighbours.find(hop, link.index);
  // It is asked for by a broadcast through the tunnel, which may be long, or leads nowhere.
  if (!byDefault && facts.neighbours.isSilent(entry))
    return lost(`${link.name} has no neighbour ${formatIp(hop)} (FAILED)`);
  if (!entry || entry.lladdr.length === 0) {
    const unanswered = isUnanswered(entry) ? entry : undefined;
    const state = unanswered ? unansweredText(unanswered, link.name) : `no neighbour ${formatIp(hop)} yet`;
    return { kind: 'vxlan', next: undefined, outer: undefined, state, broken: undefined, unanswered };
  }
  const mac = Buffer.from(entry.lladdr).toString('hex');
  const remote = fdb.get(mac) ?? byDefault;
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

function onLink(
  link: Link,
  hop: IpAddress,
  { neighbours }: WayFacts,
  of = '',
): Pick<WayOut, 'state' | 'broken' | 'unanswered'> {
  const text = formatIp(hop);
  const entry = neighbours.find(hop, link.index);
  if (neighbours.isSilent(entry)) {
    const broken: Broken = {
      what: 'neighbour',
      text: `nobody answers for ${text} on ${link.name}${of} (neighbour FAILED, asked for once more)`,
      show: `ip neigh show ${text}`,
    };
    return { state: 'neighbour FAILED', broken, unanswered: entry };
  }
  if (isUnanswered(entry)) return { state: unansweredText(entry!, link.name), broken: undefined, unanswered: entry };
  const isKnown = entry !== undefined && entry.lladdr.length > 0;
  const state = isKnown ? `${text} answers on ${link.name}` : `${text} was not asked for lately`;
  return { state, broken: undefined, unanswered: undefined };
}

function colons(mac: string): string {
  return mac.replace(/..(?=.)/g, '$&:');
}
