import { type IpFamily, isNotFound, type KernelError } from '../../core/index.ts';
import type { Attribute } from '../attribute.ts';
import { encodeBody } from '../attribute-set.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { IFF_UP } from '../uapi/if.ts';
import {
  BR_STATE_FORWARDING,
  BR_STATE_LEARNING,
  BR_STATE_LISTENING,
  IFLA,
  IFLA_BR,
  IFLA_BRPORT,
  IFLA_VLAN,
  RTEXT_FILTER_SKIP_STATS,
} from '../uapi/if-link.ts';
import { ifinfomsg, RTM_GETLINK } from '../uapi/rtnetlink.ts';
import { decodeVxlan, type Vxlan } from './devices/vxlan.ts';

/** A network interface as the kernel describes it. */
export interface Link {
  readonly index: number;
  readonly name: string;
  /** IFF_* bits. */
  readonly flags: number;
  /** IFF_UP: switched on, whether or not there is a carrier. */
  readonly up: boolean;
  readonly mtu: number;
  /** The MAC address; empty for kinds without one. */
  readonly address: Uint8Array;
  /** Index of the bridge or other master; 0 for none. */
  readonly master: number;
  /** IFLA_LINK: for a veth the index of the other end, for a VLAN or macvlan that of the device below; 0 for none. */
  readonly peerIndex: number;
  /** IFLA_LINK_NETNSID: the local number of the namespace `peerIndex` lies in; undefined for our own. */
  readonly peerNetnsId: number | undefined;
  /** IFLA_INFO_KIND, such as `veth` or `bridge`; '' for hardware and loopback. */
  readonly kind: string;
  /** IF_OPER_*. */
  readonly operState: number;
  /** IFLA_IFALIAS; '' for none. */
  readonly alias: string;
  /** Present when the link is a port of a bridge. */
  readonly bridgePort: BridgePort | undefined;
  /** Whether a bridge looks at VLANs; false for links of other kinds. */
  readonly vlanFiltering: boolean;
  /**
   * Families of which a bridge shows its frames to rules whatever the setting for all bridges says
   * (`nf_call_iptables`); none for other kinds.
   */
  readonly showsToRules: readonly IpFamily[];
  /**
   * Whether a bridge sends frames to groups of IPv6 to those alone that listen: it snoops on what they report, and somebody asks for it
   * (br_multicast_querier_exists, net/bridge/br_multicast.h). False for other kinds.
   */
  readonly toListenersAlone: boolean;
  /** The VLAN of a link of kind `vlan`, 1 to 4094; undefined for links of other kinds. */
  readonly vlanId: number | undefined;
  /** Present for kind `vxlan`. */
  readonly vxlan: Vxlan | undefined;
  /** Whether a program of XDP sees what it receives before all else does. */
  readonly hasXdp: boolean;
  /** Attributes we have no name for. */
  readonly unknown: readonly Attribute[];
}

/** The flags of a bridge port. */
export interface BridgePort {
  /** Frames may leave by the port they came in: a pod reaches itself through its Service. */
  readonly hairpin: boolean;
  /** No frames to other isolated ports. */
  readonly isolated: boolean;
  /** Frames pass: it is neither switched off nor held back by the spanning tree (BR_STATE_FORWARDING). */
  readonly forwarding: boolean;
  /** The spanning tree is about to let frames pass (BR_STATE_LISTENING, BR_STATE_LEARNING). */
  readonly settling: boolean;
  readonly learning: boolean;
  readonly unicastFlood: boolean;
  readonly multicastFlood: boolean;
  readonly broadcastFlood: boolean;
  /**
   * Nothing is flooded to the port, whoever sends it, and the bridge answers ARP of those behind it (br_flood,
   * net/bridge/br_forward.c).
   */
  readonly proxyArp: boolean;
  readonly neighbourSuppress: boolean;
  /** Frames of senders that are not entered for the port are dropped (Linux 5.16). */
  readonly locked: boolean;
}

/** How to name a link. */
export type LinkSelector = ({ readonly index: number } | { readonly name: string }) & {
  /** A `peerNetnsId`: the link lies in the namespace that has this number in the socket's. @default the socket's own */
  readonly netnsId?: number | undefined;
};

/** The link with this index or name, undefined when there is none. Throws KernelError, ERR_NETLINK_DECODE. */
export function getLink(netlink: Netlink, which: LinkSelector): Link | undefined {
  return answeredLink(netlink.exchange([], [linkQuery(which)]).answers[0]!);
}

/** The link in the answer to a `linkQuery`, undefined when there is none. Throws KernelError, ERR_NETLINK_DECODE. */
export function answeredLink(answer: Uint8Array | KernelError): Link | undefined {
  if (answer instanceof Uint8Array) return decodeLink(answer);
  if (isNotFound(answer)) return undefined;
  throw answer;
}

/** All links of the socket's namespace, in the order of their index. Throws KernelError, ERR_NETLINK_DECODE. */
export function listLinks(netlink: Netlink): Link[] {
  return netlink.dump(linkListing).map(decodeLink);
}

/** The request behind `getLink`. */
export function linkQuery(which: LinkSelector): NetlinkRequest {
  const byIndex = 'index' in which;
  return {
    type: RTM_GETLINK,
    flags: 0,
    operation: 'RTM_GETLINK',
    object: describeSelector(which),
    payload: encodeBody(ifinfomsg, { ifi_index: byIndex ? which.index : 0 }, IFLA, {
      IFLA_EXT_MASK: RTEXT_FILTER_SKIP_STATS,
      IFLA_IFNAME: byIndex ? undefined : which.name,
      IFLA_TARGET_NETNSID: which.netnsId,
    }),
  };
}

const linkListing: NetlinkRequest = {
  type: RTM_GETLINK,
  flags: 0,
  operation: 'RTM_GETLINK',
  object: 'all links',
  payload: encodeBody(ifinfomsg, {}, IFLA, { IFLA_EXT_MASK: RTEXT_FILTER_SKIP_STATS }),
};

/** `link 7` or `link "eth0"`, for errors. */
export function describeSelector(which: LinkSelector): string {
  const link = 'index' in which ? `link ${which.index}` : `link "${which.name}"`;
  return which.netnsId === undefined ? link : `${link} in the namespace ${which.netnsId}`;
}

/** Decodes the payload of an RTM_NEWLINK. Throws ERR_NETLINK_DECODE. */
export function decodeLink(payload: Uint8Array): Link {
  const header = ifinfomsg.decode(payload);
  const attributes = IFLA.decode(payload, ifinfomsg.size);
  const info = attributes.IFLA_LINKINFO;
  const isPort = info?.IFLA_INFO_SLAVE_KIND === 'bridge' && info.IFLA_INFO_SLAVE_DATA !== undefined;
  return {
    index: header.ifi_index,
    name: attributes.IFLA_IFNAME ?? '',
    flags: header.ifi_flags,
    up: (header.ifi_flags & IFF_UP) !== 0,
    mtu: attributes.IFLA_MTU ?? 0,
    address: attributes.IFLA_ADDRESS ?? new Uint8Array(),
    master: attributes.IFLA_MASTER ?? 0,
    peerIndex: attributes.IFLA_LINK ?? 0,
    peerNetnsId: attributes.IFLA_LINK_NETNSID,
    kind: info?.IFLA_INFO_KIND ?? '',
    operState: attributes.IFLA_OPERSTATE ?? 0,
    alias: attributes.IFLA_IFALIAS ?? '',
    bridgePort: isPort ? decodeBridgePort(info.IFLA_INFO_SLAVE_DATA) : undefined,
    vlanFiltering: info?.IFLA_INFO_KIND === 'bridge' && filtersVlans(info.IFLA_INFO_DATA),
    showsToRules: info?.IFLA_INFO_KIND === 'bridge' ? shownToRules(info.IFLA_INFO_DATA) : [],
    toListenersAlone: info?.IFLA_INFO_KIND === 'bridge' && sendsToListenersAlone(info.IFLA_INFO_DATA),
    vlanId: info?.IFLA_INFO_KIND === 'vlan' ? vlanIdOf(info.IFLA_INFO_DATA) : undefined,
    vxlan: info?.IFLA_INFO_KIND === 'vxlan' && info.IFLA_INFO_DATA ? decodeVxlan(info.IFLA_INFO_DATA) : undefined,
    hasXdp: (attributes.IFLA_XDP?.IFLA_XDP_ATTACHED ?? 0) !== 0,
    unknown: attributes.unknown,
  };
}

function filtersVlans(bridge: Uint8Array | undefined): boolean {
  return bridge !== undefined && IFLA_BR.decode(bridge).IFLA_BR_VLAN_FILTERING === 1;
}

function shownToRules(bridge: Uint8Array | undefined): readonly IpFamily[] {
  if (bridge === undefined) return [];
  const { IFLA_BR_NF_CALL_IPTABLES, IFLA_BR_NF_CALL_IP6TABLES } = IFLA_BR.decode(bridge);
  return [
    ...(IFLA_BR_NF_CALL_IPTABLES === 1 ? (['IPv4'] as const) : []),
    ...(IFLA_BR_NF_CALL_IP6TABLES === 1 ? (['IPv6'] as const) : []),
  ];
}

function sendsToListenersAlone(bridge: Uint8Array | undefined): boolean {
  if (bridge === undefined) return false;
  const { IFLA_BR_MCAST_SNOOPING, IFLA_BR_MCAST_QUERIER, IFLA_BR_MCAST_QUERIER_STATE } = IFLA_BR.decode(bridge);
  if (IFLA_BR_MCAST_SNOOPING !== 1) return false;
  return IFLA_BR_MCAST_QUERIER === 1 || IFLA_BR_MCAST_QUERIER_STATE?.BRIDGE_QUERIER_IPV6_OTHER_TIMER !== undefined;
}

function vlanIdOf(vlan: Uint8Array | undefined): number | undefined {
  return vlan && IFLA_VLAN.decode(vlan).IFLA_VLAN_ID;
}

function decodeBridgePort(value: Uint8Array): BridgePort {
  const port = IFLA_BRPORT.decode(value);
  return {
    hairpin: port.IFLA_BRPORT_MODE === 1,
    isolated: port.IFLA_BRPORT_ISOLATED === 1,
    settling: [BR_STATE_LISTENING, BR_STATE_LEARNING].includes(port.IFLA_BRPORT_STATE ?? BR_STATE_FORWARDING),
    forwarding: (port.IFLA_BRPORT_STATE ?? BR_STATE_FORWARDING) === BR_STATE_FORWARDING,
    learning: port.IFLA_BRPORT_LEARNING === 1,
    unicastFlood: port.IFLA_BRPORT_UNICAST_FLOOD === 1,
    multicastFlood: port.IFLA_BRPORT_MCAST_FLOOD === 1,
    broadcastFlood: port.IFLA_BRPORT_BCAST_FLOOD === 1,
    proxyArp: port.IFLA_BRPORT_PROXYARP === 1,
    neighbourSuppress: port.IFLA_BRPORT_NEIGH_SUPPRESS === 1,
    locked: port.IFLA_BRPORT_LOCKED === 1,
  };
}
