import { type Cidr, formatCidr, formatIp, formatMac, type IpAddress, ipEquals, sameBytes } from '../../core/index.ts';

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
  | { readonly kind: 'fdb'; readonly index: number; readonly mac: Uint8Array; readonly remote: IpAddress };

export type RouteWay =
  | { readonly way: 'nexthop'; readonly id: number }
  | ({ readonly way: 'gateway' } & Hop)
  /** The device itself knows by the address where a packet goes: WireGuard. */
  | { readonly way: 'device'; readonly outInterface: number }
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
      return `${object.way === 'unreachable' ? 'unreachable ' : ''}${formatCidr(object.destination)}`;
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
      return b.way === 'unreachable';
    case 'neighbour':
      return b.kind === 'neighbour' && a.index === b.index && sameBytes(a.mac, b.mac);
    case 'fdb':
      return b.kind === 'fdb' && a.index === b.index && ipEquals(a.remote, b.remote);
  }
}

function sameHop(a: Hop, b: Hop): boolean {
  return a.outInterface === b.outInterface && a.onlink === b.onlink && ipEquals(a.gateway, b.gateway);
}

/** All of an object in one line, as the kernel's tools would print it: equal texts are equal objects. */
export function textOf(object: RouteObject): string {
  switch (object.kind) {
    case 'nexthop':
      return `${keyOf(object)} ${hopText(object)}`;
    case 'route':
      return [keyOf(object), object.way !== 'unreachable' && wayText(object), object.additions]
        .filter(Boolean)
        .join(' ');
    case 'neighbour':
      return `${keyOf(object)} dev ${object.index} lladdr ${formatMac(object.mac)}`;
    case 'fdb':
      return `${keyOf(object)} dev ${object.index} dst ${formatIp(object.remote)}`;
  }
}

function wayText(way: Exclude<RouteWay, { way: 'unreachable' }>): string {
  switch (way.way) {
    case 'nexthop':
      return `nhid ${way.id}`;
    case 'gateway':
      return hopText(way);
    case 'device':
      return `dev ${way.outInterface}`;
  }
}

function hopText({ gateway, outInterface, onlink }: Hop): string {
  return `via ${formatIp(gateway)} dev ${outInterface}${onlink ? ' onlink' : ''}`;
}
