import { ipFamilyOf } from '../address-family.ts';
import { type NetlinkMessage, readMessages } from '../message.ts';
import { openSocket, type SocketOptions } from '../socket.ts';
import { ifaddrmsg } from '../uapi/if-addr.ts';
import { ndmsg } from '../uapi/neighbour.ts';
import { NETLINK_ROUTE } from '../uapi/netlink.ts';
import { nhmsg } from '../uapi/nexthop.ts';
import {
  AF_UNSPEC,
  ifinfomsg,
  RT_SCOPE_UNIVERSE,
  RTM_DELADDR,
  RTM_DELLINK,
  RTM_DELNEIGH,
  RTM_DELNEXTHOP,
  RTM_DELROUTE,
  RTM_NEWADDR,
  RTM_NEWLINK,
  RTM_NEWNEIGH,
  RTM_NEWNEXTHOP,
  RTM_NEWROUTE,
  RTNLGRP_IPV4_IFADDR,
  RTNLGRP_IPV4_ROUTE,
  RTNLGRP_IPV6_IFADDR,
  RTNLGRP_IPV6_ROUTE,
  RTNLGRP_LINK,
  RTNLGRP_NEIGH,
  RTNLGRP_NEXTHOP,
  rtmsg,
} from '../uapi/rtnetlink.ts';
import { type MessageRule, messageFilter, watchSocket } from '../watch/index.ts';
import { decodeAddress, type InterfaceAddress } from './address.ts';
import { decodeLink, type Link } from './link.ts';
import { decodeNeighbour, type Neighbour } from './neighbour.ts';
import { decodeNexthop, type Nexthop } from './nexthop.ts';
import { decodeRoute, type Route } from './route.ts';

/** What the kernel tells about a change of the network: the object as it is now, or as it was when it was deleted. */
export type NetworkEvent =
  | { readonly kind: 'link'; readonly deleted: boolean; readonly link: Link }
  | { readonly kind: 'address'; readonly deleted: boolean; readonly address: InterfaceAddress }
  | { readonly kind: 'route'; readonly deleted: boolean; readonly route: Route }
  | { readonly kind: 'nexthop'; readonly deleted: boolean; readonly nexthop: Nexthop }
  | { readonly kind: 'neighbour'; readonly deleted: boolean; readonly neighbour: Neighbour }
  /** Events were lost, because they came faster than they were read, or could not be read: list everything again. */
  | { readonly kind: 'lost' };

/** What of the network to tell. The kernel drops the rest: thousands of foreign routes wake nobody. */
export interface NetworkInterest {
  /** Links that come, go or change. @default false */
  readonly links?: boolean | undefined;
  /**
   * Addresses of links, of both families, that are good everywhere (RT_SCOPE_UNIVERSE): not the link-local ones of each
   * pod's link. @default false
   */
  readonly addresses?: boolean | undefined;
  /** Routes of both families and nexthops that were added as one of these RTPROT_*, at most 100. @default none */
  readonly protocols?: readonly number[] | undefined;
  /** Indexes, at most 100, of the links whose neighbours and FDB entries are meant. @default none */
  readonly neighbourLinks?: readonly number[] | undefined;
  /** Port IDs of conversations whose own changes are not told (`Netlink.portId`); FDB entries are told all the same. @default none */
  readonly exceptFrom?: readonly number[] | undefined;
}

/** A watch over the network that can be given another interest. */
export interface NetworkWatch {
  /** From now on tells something else; what was asked for before, and waits, is still told. Throws ERR_ENCODE, ERR_NETLINK_SOCKET. */
  narrow(interest: NetworkInterest): void;
  /** Tells now what waits to be told. */
  catchUp(): void;
  close(): void;
}

const GROUPS = [
  RTNLGRP_LINK,
  RTNLGRP_NEIGH,
  RTNLGRP_IPV4_IFADDR,
  RTNLGRP_IPV6_IFADDR,
  RTNLGRP_IPV4_ROUTE,
  RTNLGRP_IPV6_ROUTE,
  RTNLGRP_NEXTHOP,
];

/**
 * Tells what changes, by whomever, in the network of the calling thread's namespace (`inNetns` for another), from now on until
 * `close`: list afterwards, so that nothing lies between.
 *
 * What goes with something else the kernel does not always tell by itself: of a link that is switched off, deleted, or without
 * carrier, IPv4 routes, nexthops and their routes go in silence.
 *
 * @throws ERR_ENCODE for an interest in too much; ERR_NETLINK_SOCKET
 */
export function watchNetwork(
  interest: NetworkInterest,
  listener: (event: NetworkEvent) => void,
  options: Pick<SocketOptions, 'bufferBytes'> = {},
): NetworkWatch {
  const filter = messageFilter(rulesOf(interest), interest.exceptFrom);
  const socket = openSocket(NETLINK_ROUTE, { ...options, groups: GROUPS, filter });
  const watch = watchSocket(socket, (datagram) => {
    for (const event of datagram === 'lost' ? [LOST] : eventsOf(datagram)) listener(event);
  });
  return {
    narrow: (next) => socket.attachFilter(messageFilter(rulesOf(next), next.exceptFrom)),
    catchUp: watch.catchUp,
    close: watch.close,
  };
}

const LOST: NetworkEvent = { kind: 'lost' };

/** The events in a datagram of the groups. */
export function eventsOf(datagram: Uint8Array): NetworkEvent[] {
  try {
    return [...readMessages(datagram)].flatMap((message) => decodeEvent(message) ?? []);
  } catch {
    // What this program cannot read is as good as lost.
    return [LOST];
  }
}

/** Undefined for messages of other types. Throws ERR_NETLINK_DECODE. */
function decodeEvent({ type, payload }: NetlinkMessage): NetworkEvent | undefined {
  switch (type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      return { kind: 'link', deleted: type === RTM_DELLINK, link: decodeLink(payload) };
    case RTM_NEWADDR:
    case RTM_DELADDR:
      if (ipFamilyOf(ifaddrmsg.decode(payload).ifa_family) === undefined) return undefined;
      return { kind: 'address', deleted: type === RTM_DELADDR, address: decodeAddress(payload) };
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
      return { kind: 'route', deleted: type === RTM_DELROUTE, route: decodeRoute(payload) };
    case RTM_NEWNEXTHOP:
    case RTM_DELNEXTHOP:
      return { kind: 'nexthop', deleted: type === RTM_DELNEXTHOP, nexthop: decodeNexthop(payload) };
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
      return { kind: 'neighbour', deleted: type === RTM_DELNEIGH, neighbour: decodeNeighbour(payload) };
    default:
      return undefined;
  }
}

function rulesOf({
  links = false,
  addresses = false,
  protocols = [],
  neighbourLinks = [],
}: NetworkInterest): MessageRule[] {
  return [
    // A bridge tells of its ports in the same messages, of family AF_BRIDGE: such a "deleted" one is still a link.
    { types: [RTM_NEWLINK, RTM_DELLINK], field: ifinfomsg.fields.ifi_family, values: links ? [AF_UNSPEC] : [] },
    {
      types: [RTM_NEWADDR, RTM_DELADDR],
      field: ifaddrmsg.fields.ifa_scope,
      values: addresses ? [RT_SCOPE_UNIVERSE] : [],
    },
    { types: [RTM_NEWROUTE, RTM_DELROUTE], field: rtmsg.fields.rtm_protocol, values: protocols },
    { types: [RTM_NEWNEXTHOP, RTM_DELNEXTHOP], field: nhmsg.fields.nh_protocol, values: protocols },
    { types: [RTM_NEWNEIGH, RTM_DELNEIGH], field: ndmsg.fields.ndm_ifindex, values: neighbourLinks },
  ];
}
