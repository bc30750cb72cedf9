import {
  type Cidr,
  formatCidr,
  formatIp,
  formatMac,
  type IpAddress,
  type IpFamily,
  ipEquals,
  sameBytes,
} from '../../core/index.ts';
import {
  RTN_BLACKHOLE,
  RTN_LOCAL,
  RTN_PROHIBIT,
  RTN_THROW,
  RTN_UNICAST,
  RTN_UNREACHABLE,
} from '../../netlink/uapi/index.ts';

/**
 * Says in `rtm_protocol` and `nh_protocol` that a route or nexthop is ours. In use elsewhere: 0 to 18 and 42 to 43 (kernel,
 * routing daemons, kube-router 17), 80 (Calico), 99 (openr), 186 to 200 (FRR).
 */
export const RTPROT_NODEPLANE = 78;

/** The least of our nexthop identifiers ("NP" in ASCII, then 16 bits of number): others number theirs from 1. */
export const FIRST_NEXTHOP_ID = 0x4e500000;
/** Twice as many as the largest cluster has nodes, in both families. */
export const NEXTHOP_IDS = 1 << 16;

/** Loses against every other route, so that it only takes what nobody else does. */
export const LAST_METRIC = 0x4e500000;

/** What the kernel gives an IPv6 route without a metric; named, so that no route with another one is meant when it is deleted. */
export const IPV6_METRIC = 1024;

/** Of routes of ours that lead somewhere. */
export function metricOf(family: IpFamily): number {
  return family === 'IPv4' ? 0 : IPV6_METRIC;
}

/** Where packets go next. */
export interface Hop {
  /** Index of the link. */
  readonly outInterface: number;
  readonly gateway: IpAddress;
  /** The gateway counts as reachable although no prefix of the link contains it. */
  readonly onlink: boolean;
}

/** Something of ours in the kernel's routing tables, of one family. */
export type RouteObject =
  /** A place routes refer to by number, so that adding one costs the same at any number. */
  | ({ readonly kind: 'nexthop'; readonly id: number } & Hop)
  | ({
      readonly kind: 'route';
      readonly destination: Cidr;
      /** What no route of ours has and others gave it: `mtu 600 src 192.0.2.1`. @default nothing */
      readonly additions?: string;
    } & RouteWay)
  /** Which MAC address an address has inside the tunnel. Permanent. */
  | { readonly kind: 'neighbour'; readonly index: number; readonly ip: IpAddress; readonly mac: Uint8Array }
  /** To which node the tunnel carries frames for a MAC address. Permanent. */
  | {
      readonly kind: 'fdb';
      readonly index: number;
      readonly mac: Uint8Array;
      /** Undefined: others gave it a nexthop object. */
      readonly remote: IpAddress | undefined;
      /** What no entry of ours has and others gave it: `port 4789`. @default nothing */
      readonly additions?: string;
    };

/** Where a route leads. */
export type RouteWay =
  | { readonly way: 'nexthop'; readonly id: number }
  | ({ readonly way: 'gateway' } & Hop)
  /** The device itself knows by the address where a packet goes: WireGuard. */
  | { readonly way: 'device'; readonly outInterface: number }
  /** As no route of ours is, though it has our number: of another metric, type or TOS, or by several gateways. */
  | { readonly way: 'other'; readonly type: number; readonly priority: number; readonly tos: number }
  /** ICMP "unreachable" answers what no other route takes; its metric is LAST_METRIC. */
  | { readonly way: 'unreachable' };

/** What has to be done to one object. */
export interface RouteOperation {
  /**
   * `add` of a route or nexthop fails where there is one with the same key, whoever made it; `replace` takes its place. What is
   * on our own device is ours: there `add` does the same as `replace`.
   */
  readonly action: 'add' | 'replace' | 'delete';
  readonly object: RouteObject;
}

/** What makes an object the same one: the kernel has no two with one key. */
export function keyOf(object: RouteObject): string {
  switch (object.kind) {
    case 'nexthop':
      return `nexthop ${object.id}`;
    case 'route':
      return routeKey(object);
    case 'neighbour':
      return `neighbour ${formatIp(object.ip)}`;
    case 'fdb':
      return `fdb ${formatMac(object.mac)}`;
  }
}

/** Whether two objects with one key are equal. */
export function sameObject(a: RouteObject, b: RouteObject): boolean {
  switch (a.kind) {
    case 'nexthop':
      return b.kind === 'nexthop' && sameHop(a, b);
    case 'route':
      if (b.kind !== 'route' || a.additions !== b.additions) return false;
      if (a.way === 'nexthop') return b.way === 'nexthop' && a.id === b.id;
      if (a.way === 'gateway') return b.way === 'gateway' && sameHop(a, b);
      if (a.way === 'device') return b.way === 'device' && a.outInterface === b.outInterface;
      return a.way === 'unreachable' && b.way === 'unreachable';
    case 'neighbour':
      return b.kind === 'neighbour' && a.index === b.index && sameBytes(a.mac, b.mac);
    case 'fdb':
      return b.kind === 'fdb' && a.index === b.index && a.additions === b.additions && sameRemote(a.remote, b.remote);
  }
}

function sameRemote(a: IpAddress | undefined, b: IpAddress | undefined): boolean {
  return a && b ? ipEquals(a, b) : a === b;
}

function sameHop(a: Hop, b: Hop): boolean {
  return a.outInterface === b.outInterface && a.onlink === b.onlink && ipEquals(a.gateway, b.gateway);
}

/** RTN_*, as `ip route` calls them. */
export const ROUTE_TYPE_WORDS: Readonly<Record<number, string>> = {
  [RTN_UNICAST]: 'unicast',
  [RTN_LOCAL]: 'local',
  [RTN_BLACKHOLE]: 'blackhole',
  [RTN_UNREACHABLE]: 'unreachable',
  [RTN_PROHIBIT]: 'prohibit',
  [RTN_THROW]: 'throw',
};

/** What a link is called. */
export type LinkNames = (index: number) => string;

/**
 * All of an object in one line, as the kernel's tools would print it: equal texts are equal objects.
 *
 * @param nameOf for people. @default its number
 */
export function textOf(object: RouteObject, nameOf: LinkNames = String): string {
  switch (object.kind) {
    case 'nexthop':
      return `${keyOf(object)} ${hopText(object, nameOf)}`;
    case 'route':
      return joined(keyOf(object), wayText(object, nameOf), object.additions);
    case 'neighbour':
      return `${keyOf(object)} dev ${nameOf(object.index)} lladdr ${formatMac(object.mac)}`;
    case 'fdb': {
      const { index, remote, additions } = object;
      return joined(keyOf(object), `dev ${nameOf(index)}`, remote && `dst ${formatIp(remote)}`, additions);
    }
  }
}

/** What is of another type takes the place of ours all the same; what has another metric or TOS stands beside it. */
function routeKey(route: Extract<RouteObject, { kind: 'route' }>): string {
  const destination = formatCidr(route.destination);
  if (route.way === 'unreachable') return `unreachable ${destination}`;
  if (route.way !== 'other') return destination;
  const { priority, tos } = route;
  const isBeside = priority !== metricOf(route.destination.address.family);
  return joined(destination, tos !== 0 && `tos ${tos}`, isBeside && `metric ${priority}`);
}

function wayText(way: RouteWay, nameOf: LinkNames): string {
  switch (way.way) {
    case 'unreachable':
      return '';
    case 'other':
      return ROUTE_TYPE_WORDS[way.type] ?? '';
    case 'nexthop':
      return `nhid ${way.id}`;
    case 'gateway':
      return hopText(way, nameOf);
    case 'device':
      return `dev ${nameOf(way.outInterface)}`;
  }
}

function hopText({ gateway, outInterface, onlink }: Hop, nameOf: LinkNames): string {
  return joined(`via ${formatIp(gateway)}`, `dev ${nameOf(outInterface)}`, onlink && 'onlink');
}

function joined(...parts: readonly (string | false | undefined)[]): string {
  return parts.filter(Boolean).join(' ');
}
