import { encodeBody, encodeNest } from '../attribute-set.ts';
import { flagValue } from '../integer.ts';
import type { NetlinkRequest } from '../message.ts';
import { IFF_PROMISC, IFF_UP } from '../uapi/if.ts';
import { BR_STATE_FORWARDING, IFLA, IFLA_BR, IFLA_BRPORT, VETH_INFO } from '../uapi/if-link.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from '../uapi/netlink.ts';
import { ifinfomsg, RTM_DELLINK, RTM_NEWLINK, RTM_SETLINK } from '../uapi/rtnetlink.ts';
import { type BridgePort, describeSelector, type LinkSelector } from './link.ts';

/** A bridge to make. */
export interface BridgeSpec {
  /** At most 15 bytes. */
  readonly name: string;
  /** Six bytes. A bridge without one changes its MAC with its ports, which makes pods lose their gateway. */
  readonly mac: Uint8Array;
  /** Given here it yields to ports with a smaller one; set later with `setLink` it stays. */
  readonly mtu?: number | undefined;
  /** @default false */
  readonly up?: boolean | undefined;
  /** Look at VLANs. EOPNOTSUPP when the kernel's bridge does not know them. @default false */
  readonly vlanFiltering?: boolean | undefined;
}

/** A veth pair to make: one end in the socket's namespace, the peer in another. */
export interface VethSpec {
  /** At most 15 bytes. */
  readonly name: string;
  /** Six bytes. */
  readonly mac: Uint8Array;
  /** @default the kernel's (1500) */
  readonly mtu?: number | undefined;
  /** Index of the bridge to become a port of. */
  readonly master?: number | undefined;
  /** @default false */
  readonly up?: boolean | undefined;
  /** Of each end, in each direction. @default one a processor, all but one of them off */
  readonly queues?: number | undefined;
  readonly peer: {
    readonly name: string;
    readonly mac: Uint8Array;
    /** Not inherited from the other end. @default the kernel's (1500) */
    readonly mtu?: number | undefined;
    /** A descriptor, of this process, of the namespace the peer is made in. */
    readonly netnsFd: number;
  };
}

/** What to change of a link; what is left out stays. */
export interface LinkChange {
  readonly up?: boolean | undefined;
  /** Take in every frame. */
  readonly promiscuous?: boolean | undefined;
  readonly mtu?: number | undefined;
  /** Six bytes. */
  readonly mac?: Uint8Array | undefined;
  /** Index of the bridge to become a port of; 0 releases. */
  readonly master?: number | undefined;
  /** Kernels before 6.2 rename only links that are down (EBUSY). */
  readonly name?: string | undefined;
  /** Free text shown by `ip link`, at most 255 bytes; '' removes it. */
  readonly alias?: string | undefined;
  /** A descriptor, of this process, of the namespace to move the link to. It arrives down and without addresses. */
  readonly netnsFd?: number | undefined;
}

/** Makes a bridge without spanning tree and without forward delay, so that a new port forwards at once. */
export function newBridge(spec: BridgeSpec): NetlinkRequest {
  return {
    type: RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    operation: 'RTM_NEWLINK',
    object: `bridge "${spec.name}"`,
    payload: encodeBody(ifinfomsg, flagBits({ up: spec.up }), IFLA, {
      IFLA_ADDRESS: spec.mac,
      IFLA_MTU: spec.mtu,
      IFLA_IFNAME: spec.name,
      IFLA_LINKINFO: {
        IFLA_INFO_KIND: 'bridge',
        IFLA_INFO_DATA: encodeNest(IFLA_BR, {
          IFLA_BR_FORWARD_DELAY: 0,
          IFLA_BR_STP_STATE: 0,
          IFLA_BR_VLAN_FILTERING: spec.vlanFiltering ? 1 : undefined,
        }),
      },
    }),
  };
}

/**
 * Makes a veth pair whose peer is born inside the target namespace, so that its name never exists in ours.
 *
 * The peer comes down: IFF_UP in its header makes the kernel refuse the whole request (ENOTCONN). An alias and port
 * flags cannot be set here either: the kernel ignores them in a request that creates (`setLink`, `setBridgePort`
 * afterwards, in one datagram). A name already taken in either namespace is EEXIST, and nothing is made.
 */
export function newVeth(spec: VethSpec): NetlinkRequest {
  const { peer, queues } = spec;
  const queueCounts = { IFLA_NUM_TX_QUEUES: queues, IFLA_NUM_RX_QUEUES: queues };
  const peerBody = encodeBody(ifinfomsg, {}, IFLA, {
    IFLA_ADDRESS: peer.mac,
    IFLA_MTU: peer.mtu,
    IFLA_NET_NS_FD: peer.netnsFd,
    ...queueCounts,
    IFLA_IFNAME: peer.name,
  });
  return {
    type: RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    operation: 'RTM_NEWLINK',
    object: `veth "${spec.name}" with peer "${peer.name}"`,
    payload: encodeBody(ifinfomsg, flagBits({ up: spec.up }), IFLA, {
      IFLA_ADDRESS: spec.mac,
      IFLA_MTU: spec.mtu,
      IFLA_MASTER: spec.master,
      ...queueCounts,
      IFLA_IFNAME: spec.name,
      IFLA_LINKINFO: {
        IFLA_INFO_KIND: 'veth',
        IFLA_INFO_DATA: encodeNest(VETH_INFO, { VETH_INFO_PEER: peerBody }),
      },
    }),
  };
}

/**
 * Changes a link, named by its index, or by its name, which can then not be changed. The kernel applies what it can in
 * its own order and stops at the first thing it refuses.
 */
export function setLink(which: number | { readonly name: string }, change: LinkChange): NetlinkRequest {
  const byName = typeof which === 'object';
  return {
    type: RTM_SETLINK,
    flags: 0,
    operation: 'RTM_SETLINK',
    object: `link ${byName ? `"${which.name}"` : which} (${describeChange(change)})`,
    payload: encodeBody(ifinfomsg, { ifi_index: byName ? 0 : which, ...flagBits(change) }, IFLA, {
      IFLA_ADDRESS: change.mac,
      IFLA_MTU: change.mtu,
      IFLA_MASTER: change.master,
      IFLA_IFALIAS: change.alias,
      IFLA_NET_NS_FD: change.netnsFd,
      IFLA_IFNAME: byName ? which.name : change.name,
    }),
  };
}

/** Sets flags of a bridge port, and then of the link itself; what is left out stays. EOPNOTSUPP when the link is no port of a bridge. */
export function setBridgePort(
  index: number,
  flags: { readonly [K in Exclude<keyof BridgePort, 'forwarding'>]?: boolean | undefined } & {
    /** Lets frames pass again; EBUSY where the spanning tree decides, ENETDOWN while the port has no carrier. */
    readonly forwarding?: true | undefined;
  },
  change: Pick<LinkChange, 'up' | 'alias'> = {},
): NetlinkRequest {
  return {
    // The kernel changes what a kind defines in this request alone; without NLM_F_CREATE it makes nothing.
    type: RTM_NEWLINK,
    flags: 0,
    operation: 'RTM_NEWLINK',
    object: `bridge port ${describeSelector({ index })} (${describeChange({ ...flags, ...change })})`,
    payload: encodeBody(ifinfomsg, { ifi_index: index, ...flagBits(change) }, IFLA, {
      IFLA_IFALIAS: change.alias,
      IFLA_LINKINFO: {
        IFLA_INFO_SLAVE_DATA: encodeNest(IFLA_BRPORT, {
          IFLA_BRPORT_STATE: flags.forwarding && BR_STATE_FORWARDING,
          IFLA_BRPORT_MODE: flagValue(flags.hairpin),
          IFLA_BRPORT_LEARNING: flagValue(flags.learning),
          IFLA_BRPORT_UNICAST_FLOOD: flagValue(flags.unicastFlood),
          IFLA_BRPORT_PROXYARP: flagValue(flags.proxyArp),
          IFLA_BRPORT_MCAST_FLOOD: flagValue(flags.multicastFlood),
          IFLA_BRPORT_BCAST_FLOOD: flagValue(flags.broadcastFlood),
          IFLA_BRPORT_NEIGH_SUPPRESS: flagValue(flags.neighbourSuppress),
          IFLA_BRPORT_ISOLATED: flagValue(flags.isolated),
          IFLA_BRPORT_LOCKED: flagValue(flags.locked),
        }),
      },
    }),
  };
}

/** Changes settings of a bridge; what is left out stays. EOPNOTSUPP when the kernel does not know one. */
export function setBridge(index: number, settings: { readonly vlanFiltering?: boolean | undefined }): NetlinkRequest {
  return {
    // The kernel changes what a kind defines in this request alone; without NLM_F_CREATE it makes nothing.
    type: RTM_NEWLINK,
    flags: 0,
    operation: 'RTM_NEWLINK',
    object: `bridge ${index} (${describeChange(settings)})`,
    payload: encodeBody(ifinfomsg, { ifi_index: index }, IFLA, {
      IFLA_LINKINFO: {
        IFLA_INFO_KIND: 'bridge',
        IFLA_INFO_DATA: encodeNest(IFLA_BR, { IFLA_BR_VLAN_FILTERING: flagValue(settings.vlanFiltering) }),
      },
    }),
  };
}

/** Deletes a link; of a veth pair both ends go. ENODEV when there is none (`isNotFound`). */
export function deleteLink(which: LinkSelector): NetlinkRequest {
  const byIndex = 'index' in which;
  return {
    type: RTM_DELLINK,
    flags: 0,
    operation: 'RTM_DELLINK',
    object: describeSelector(which),
    payload: encodeBody(ifinfomsg, { ifi_index: byIndex ? which.index : 0 }, IFLA, {
      IFLA_IFNAME: byIndex ? undefined : which.name,
      IFLA_TARGET_NETNSID: which.netnsId,
    }),
  };
}

/** ifi_change tells the kernel which bits of ifi_flags to look at. */
function flagBits({ up, promiscuous }: LinkChange): { ifi_flags?: number; ifi_change?: number } {
  const bits = [
    [up, IFF_UP],
    [promiscuous, IFF_PROMISC],
  ] as const;
  const given = bits.filter(([value]) => value !== undefined);
  if (given.length === 0) return {};
  return {
    ifi_flags: given.reduce((flags, [value, bit]) => flags | (value ? bit : 0), 0),
    ifi_change: given.reduce((change, [, bit]) => change | bit, 0),
  };
}

/** `up true, mtu 1450`, for errors. */
function describeChange(change: object): string {
  return Object.entries(change)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key} ${value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value}`)
    .join(', ');
}
