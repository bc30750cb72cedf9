import {
  addressBits,
  type Cidr,
  formatCidr,
  formatIp,
  type IpAddress,
  type IpFamily,
  ifPresent,
  NodeplaneError,
  readU32,
} from '../../core/index.ts';
import { checkPrefixLength, decodeIp, familyNumber, ipFamilyOf } from '../address-family.ts';
import type { Attribute } from '../attribute.ts';
import { encodeBody } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE } from '../uapi/netlink.ts';
import {
  AF_UNSPEC,
  RT_SCOPE_HOST,
  RT_SCOPE_LINK,
  RT_SCOPE_NOWHERE,
  RT_SCOPE_UNIVERSE,
  RT_TABLE_MAIN,
  RT_TABLE_UNSPEC,
  RTA,
  RTM_DELROUTE,
  RTM_F_CLONED,
  RTM_GETROUTE,
  RTM_NEWROUTE,
  RTN_LOCAL,
  RTN_UNICAST,
  RTNH_F_ONLINK,
  RTPROT_STATIC,
  rtmsg,
} from '../uapi/rtnetlink.ts';

/** A route as the kernel describes it. */
export interface Route {
  readonly family: IpFamily;
  /** The zero address and prefix length 0 for a default route. */
  readonly destination: Cidr;
  readonly gateway: IpAddress | undefined;
  /**
   * The nexthop object or group it goes by; 0 for none. Gateway and link are told beside it, unless
   * net/ipv4/nexthop_compat_mode is 0 or it is a group.
   */
  readonly nexthopId: number;
  /** Index of the link; 0 for none (blackhole) or for several (multipath, whose next hops are in `unknown`). */
  readonly outInterface: number;
  /** RT_TABLE_*, or a number of the administrator's. */
  readonly table: number;
  /** RTPROT_*: who added it. */
  readonly protocol: number;
  /** RT_SCOPE_*. */
  readonly scope: number;
  /** RTN_*. */
  readonly type: number;
  /** The metric; the lowest wins. */
  readonly priority: number;
  /** IPv4: the DSCP of the packets it is for, in the upper six bits; 0 for all that no other route is for. */
  readonly tos: number;
  /** The source address local sockets choose. */
  readonly source: IpAddress | undefined;
  /** The gateway counts as directly reachable although no prefix of the link contains it. */
  readonly onlink: boolean;
  readonly mtu: number | undefined;
  readonly advmss: number | undefined;
  /** What else it says of connections, in words of `ip route`: `initcwnd 10`. */
  readonly otherMetrics: readonly string[];
  /** Attributes we have no name for. */
  readonly unknown: readonly Attribute[];
}

/** A route to add. */
export interface RouteSpec {
  readonly destination: Cidr;
  /** Of the destination's family. */
  readonly gateway?: IpAddress | undefined;
  /**
   * A nexthop object (`newNexthop`, Linux 5.3) that tells gateway and link, which are then not given here (EINVAL).
   * EINVAL when there is none.
   */
  readonly nexthopId?: number | undefined;
  /** Index of the link. */
  readonly outInterface?: number | undefined;
  /** RT_SCOPE_*. @default for IPv4 link without and universe with a gateway or nexthop, host for local routes; IPv6 has none */
  readonly scope?: number | undefined;
  /** Do not require a prefix of the link to contain the gateway. @default false */
  readonly onlink?: boolean | undefined;
  /** The metric. @default the kernel's: IPv4 0, IPv6 1024 */
  readonly priority?: number | undefined;
  /** IPv4. @default 0 */
  readonly tos?: number | undefined;
  /** @default RT_TABLE_MAIN */
  readonly table?: number | undefined;
  /** RTPROT_*. @default RTPROT_STATIC */
  readonly protocol?: number | undefined;
  /** RTN_*. @default RTN_UNICAST */
  readonly type?: number | undefined;
  /** The source address local sockets choose. */
  readonly source?: IpAddress | undefined;
  readonly mtu?: number | undefined;
  readonly advmss?: number | undefined;
  /** Take the place of a route with the same destination and metric, instead of EEXIST. @default false */
  readonly replace?: boolean | undefined;
}

/** Adds a route. Throws ERR_ENCODE when the addresses are of different families. */
export function newRoute(spec: RouteSpec): NetlinkRequest {
  return {
    type: RTM_NEWROUTE,
    flags: NLM_F_CREATE | (spec.replace ? NLM_F_REPLACE : NLM_F_EXCL),
    operation: 'RTM_NEWROUTE',
    // Written when something goes wrong: thousands of routes are made at a time.
    get object() {
      return describeRoute(spec);
    },
    payload: encodeRoute(spec, {
      scope: spec.scope ?? defaultScope(spec),
      type: spec.type ?? RTN_UNICAST,
      protocol: spec.protocol ?? RTPROT_STATIC,
    }),
  };
}

/**
 * Removes the first route that has all the properties given; type and protocol count only when given.
 * ESRCH when there is none (`isNotFound`).
 */
export function deleteRoute(spec: Omit<RouteSpec, 'replace'>): NetlinkRequest {
  return {
    type: RTM_DELROUTE,
    flags: 0,
    operation: 'RTM_DELROUTE',
    get object() {
      return describeRoute(spec);
    },
    payload: encodeRoute(spec, {
      scope: spec.scope ?? anyScope(spec.destination.address.family),
      type: spec.type ?? 0,
      protocol: spec.protocol ?? 0,
    }),
  };
}

/** What to list; what is left out does not restrict. The kernel leaves out the others, so that they cost next to nothing. */
export interface RouteFilter {
  readonly family?: IpFamily | undefined;
  readonly table?: number | undefined;
  /** RTPROT_*. */
  readonly protocol?: number | undefined;
  readonly outInterface?: number | undefined;
}

/** The routes of the socket's namespace, all tables unless one is named. Throws KernelError, ERR_NETLINK_DECODE. */
export function listRoutes(netlink: Netlink, filter: RouteFilter = {}): Route[] {
  return dumpRoutes(netlink, filter).flatMap((payload) => decodeListedRoute(payload) ?? []);
}

/** As `decodeRoute`; undefined for what is listed among the routes and is none. */
export function decodeListedRoute(payload: Uint8Array): Route | undefined {
  const header = rtmsg.decode(payload);
  // Multicast routes are listed under families of their own, learned exceptions among the routes they qualify.
  const isRoute = ipFamilyOf(header.rtm_family) !== undefined && (header.rtm_flags & RTM_F_CLONED) === 0;
  return isRoute ? decodeRoute(payload) : undefined;
}

function dumpRoutes(netlink: Netlink, filter: RouteFilter): Uint8Array[] {
  const list = () => netlink.dump(routeListing(filter));
  // A table exists from its first route on.
  return filter.table === undefined ? list() : (ifPresent(list) ?? []);
}

/** The request behind `listRoutes`. */
export function routeListing(filter: RouteFilter): NetlinkRequest {
  return {
    type: RTM_GETROUTE,
    flags: 0,
    operation: 'RTM_GETROUTE',
    object: filter.table === undefined ? 'all routes' : `routes of table ${filter.table}`,
    payload: encodeBody(
      rtmsg,
      {
        rtm_family: filter.family ? familyNumber(filter.family) : AF_UNSPEC,
        rtm_protocol: filter.protocol ?? 0,
      },
      RTA,
      { RTA_TABLE: filter.table, RTA_OIF: filter.outInterface },
    ),
  };
}

/** Decodes the payload of an RTM_NEWROUTE of IPv4 or IPv6. Throws ERR_NETLINK_DECODE. */
export function decodeRoute(payload: Uint8Array): Route {
  const header = rtmsg.decode(payload);
  const family = ipFamilyOf(header.rtm_family);
  if (!family) throw decodeError('RTM_NEWROUTE', `family ${header.rtm_family} is neither IPv4 nor IPv6`);
  const attributes = RTA.decode(payload, rtmsg.size);
  const ip = (name: 'RTA_DST' | 'RTA_GATEWAY' | 'RTA_PREFSRC') =>
    attributes[name] && decodeIp(family, attributes[name], name);
  return {
    family,
    destination: {
      address: ip('RTA_DST') ?? { family, bytes: new Uint8Array(addressBits(family) / 8) },
      prefixLength: checkPrefixLength(family, header.rtm_dst_len, 'rtm_dst_len'),
    },
    gateway: ip('RTA_GATEWAY'),
    nexthopId: attributes.RTA_NH_ID ?? 0,
    outInterface: attributes.RTA_OIF ?? 0,
    table: attributes.RTA_TABLE ?? header.rtm_table,
    protocol: header.rtm_protocol,
    scope: header.rtm_scope,
    type: header.rtm_type,
    priority: attributes.RTA_PRIORITY ?? 0,
    tos: header.rtm_tos,
    source: ip('RTA_PREFSRC'),
    onlink: (header.rtm_flags & RTNH_F_ONLINK) !== 0,
    mtu: attributes.RTA_METRICS?.RTAX_MTU,
    advmss: attributes.RTA_METRICS?.RTAX_ADVMSS,
    otherMetrics: attributes.RTA_METRICS?.unknown.map(metricText) ?? [],
    unknown: attributes.unknown,
  };
}

/** RTAX_* of <linux/rtnetlink.h>, as `ip route` calls them. */
const METRIC_WORDS: Readonly<Record<number, string>> = {
  1: 'lock',
  3: 'window',
  4: 'rtt',
  5: 'rttvar',
  6: 'ssthresh',
  7: 'cwnd',
  9: 'reordering',
  10: 'hoplimit',
  11: 'initcwnd',
  12: 'features',
  13: 'rto_min',
  14: 'initrwnd',
  15: 'quickack',
  16: 'congctl',
  17: 'fastopen_no_cookie',
};

function metricText({ type, value }: Attribute): string {
  const word = METRIC_WORDS[type] ?? `metric ${type}`;
  return value.length === 4 ? `${word} ${readU32(value, 0)}` : word;
}

function encodeRoute(
  spec: Omit<RouteSpec, 'replace'>,
  { scope, type, protocol }: { readonly scope: number; readonly type: number; readonly protocol: number },
): Uint8Array {
  const { family } = spec.destination.address;
  for (const other of [spec.gateway, spec.source]) {
    if (other && other.family !== family) {
      throw new NodeplaneError(
        'ERR_ENCODE',
        `Cannot write the route ${describeRoute(spec)}: "${formatIp(other)}" is not an ${family} address`,
      );
    }
  }
  const table = spec.table ?? RT_TABLE_MAIN;
  // The header has room for the low byte alone.
  const tableFits = table <= 0xff;
  const hasMetrics = spec.mtu !== undefined || spec.advmss !== undefined;
  return encodeBody(
    rtmsg,
    {
      rtm_family: familyNumber(family),
      rtm_dst_len: spec.destination.prefixLength,
      rtm_tos: spec.tos ?? 0,
      rtm_table: tableFits ? table : RT_TABLE_UNSPEC,
      rtm_protocol: protocol,
      rtm_scope: scope,
      rtm_type: type,
      rtm_flags: spec.onlink ? RTNH_F_ONLINK : 0,
    },
    RTA,
    {
      RTA_DST: spec.destination.prefixLength > 0 ? spec.destination.address.bytes : undefined,
      RTA_NH_ID: spec.nexthopId,
      RTA_GATEWAY: spec.gateway?.bytes,
      RTA_PREFSRC: spec.source?.bytes,
      RTA_PRIORITY: spec.priority,
      RTA_TABLE: tableFits ? undefined : table,
      RTA_OIF: spec.outInterface,
      RTA_METRICS: hasMetrics ? { RTAX_MTU: spec.mtu, RTAX_ADVMSS: spec.advmss } : undefined,
    },
  );
}

/** For deleting: IPv4 reads "nowhere" as any scope; IPv6 does not look at it. */
function anyScope(family: IpFamily): number {
  return family === 'IPv4' ? RT_SCOPE_NOWHERE : RT_SCOPE_UNIVERSE;
}

/** As `ip route add` chooses it: a gateway must be reachable in a narrower scope than the routes through it. */
function defaultScope(spec: RouteSpec): number {
  if (spec.destination.address.family === 'IPv6') return RT_SCOPE_UNIVERSE;
  const type = spec.type ?? RTN_UNICAST;
  if (type === RTN_LOCAL) return RT_SCOPE_HOST;
  const direct = !spec.gateway && spec.nexthopId === undefined;
  return type === RTN_UNICAST && direct ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
}

/** `10.1.0.0/16 via 10.0.0.2 dev 7`, for errors. */
function describeRoute(spec: Omit<RouteSpec, 'replace'>): string {
  return [
    formatCidr(spec.destination),
    spec.gateway && `via ${formatIp(spec.gateway)}`,
    spec.nexthopId !== undefined && `by nexthop ${spec.nexthopId}`,
    spec.outInterface !== undefined && `on link ${spec.outInterface}`,
    spec.table !== undefined && `in table ${spec.table}`,
  ]
    .filter(Boolean)
    .join(' ');
}
