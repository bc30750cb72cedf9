import { addressBits, formatIp, type IpAddress, type IpFamily, isNotFound, KernelError } from '../../../core/index.ts';
import { familyNumber } from '../../address-family.ts';
import { encodeBody } from '../../attribute-set.ts';
import type { NetlinkRequest } from '../../message.ts';
import type { Netlink } from '../../netlink.ts';
import { RTA_LOOKUP, RTM_F_FIB_MATCH, RTM_GETROUTE, rtmsg } from '../../uapi/rtnetlink.ts';
import { decodeRoute, type Route } from '../route.ts';

/** IPPROTO_TCP or IPPROTO_UDP, and the ports that are known. */
export interface RoutedFlow {
  readonly protocol: number;
  readonly sourcePort?: number | undefined;
  readonly destinationPort?: number | undefined;
}

/** Which way a packet would take; what is left out the kernel takes for zero. */
export interface RouteQuestion {
  readonly destination: IpAddress;
  /** Of the destination's family. */
  readonly source?: IpAddress | undefined;
  /** Index of the link the packet came in by: then it is looked up as one to be forwarded, with all checks (rp_filter). */
  readonly inInterface?: number | undefined;
  readonly mark?: number | undefined;
  /** What policy rules may ask for besides (Linux 4.17). */
  readonly flow?: RoutedFlow | undefined;
  /** The user whose socket sends, of what this host sends itself. @default the caller; of what is forwarded, as the kernel does */
  readonly user?: number | undefined;
  /** The route that matched, with its prefix, in place of the way to the one address. @default false */
  readonly matched?: boolean | undefined;
}

/** The way the kernel would take, or the error it answers instead: EHOSTUNREACH, EINVAL, EACCES, ENETUNREACH. */
export type RouteAnswer =
  | { readonly kind: 'route'; readonly route: Route }
  | { readonly kind: 'refused'; readonly errno: string };

/**
 * Asks which way a packet would take, policy rules and marks included (RTM_GETROUTE).
 *
 * @throws ERR_NETLINK_SOCKET, ERR_NETLINK_DECODE
 */
export function lookUpRoute(netlink: Netlink, question: RouteQuestion): RouteAnswer {
  const [answer] = netlink.exchange([], [routeQuery(question)]).answers;
  if (answer instanceof KernelError) {
    if (!isNotFound(answer) && answer.errnoName === undefined) throw answer;
    return { kind: 'refused', errno: answer.errnoName };
  }
  return { kind: 'route', route: decodeRoute(answer!) };
}

function routeQuery({ destination, source, inInterface, mark, flow, user, matched }: RouteQuestion): NetlinkRequest {
  const bits = addressBits(destination.family);
  return {
    type: RTM_GETROUTE,
    flags: 0,
    operation: 'RTM_GETROUTE',
    object: `the way to ${formatIp(destination)}`,
    payload: encodeBody(
      rtmsg,
      {
        rtm_family: familyNumber(destination.family),
        rtm_dst_len: bits,
        rtm_src_len: source ? bits : 0,
        rtm_flags: matched ? RTM_F_FIB_MATCH : 0,
      },
      RTA_LOOKUP,
      {
        RTA_DST: destination.bytes,
        RTA_SRC: source?.bytes,
        RTA_IIF: inInterface,
        RTA_MARK: mark,
        RTA_UID: user ?? userOf(destination.family, inInterface),
        RTA_IP_PROTO: flow?.protocol,
        RTA_SPORT: flow?.sourcePort,
        RTA_DPORT: flow?.destinationPort,
      },
    ),
  };
}

/**
 * Of IPv6, packets that are forwarded are root's to policy rules (ip6_route_input, net/ipv6/route.c, leaves flowi6_uid 0), and nobody's in
 * a question that names no user. A question of IPv4 is answered as packets are.
 */
function userOf(family: IpFamily, inInterface: number | undefined): number | undefined {
  return family === 'IPv6' && inInterface !== undefined ? 0 : undefined;
}
