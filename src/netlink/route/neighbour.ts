import { formatIp, formatMac, type IpAddress, type IpFamily, NodeplaneError } from '../../core/index.ts';
import { decodeIp, familyNumber, ipFamilyOf } from '../address-family.ts';
import type { Attribute } from '../attribute.ts';
import { encodeBody } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { NDA, NTF_PROXY, NTF_SELF, NTF_USE, NUD_NONE, NUD_PERMANENT, ndaCacheinfo, ndmsg } from '../uapi/neighbour.ts';
import { NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE } from '../uapi/netlink.ts';
import { AF_BRIDGE, AF_UNSPEC, RTM_DELNEIGH, RTM_GETNEIGH, RTM_NEWNEIGH } from '../uapi/rtnetlink.ts';

/** Whose table an entry is in: ARP, neighbour discovery, or the forwarding database (FDB) of a bridge or VXLAN device. */
export type NeighbourFamily = IpFamily | 'bridge';

/** Ticks of a second, as the kernel counts them for programs. */
const USER_HZ = 100;

/** A neighbour or FDB entry as the kernel describes it. */
export interface Neighbour {
  readonly family: NeighbourFamily;
  /** Index of the link. */
  readonly index: number;
  /** The neighbour's address; for an FDB entry the remote tunnel end, if any. */
  readonly ip: IpAddress | undefined;
  /** MAC address; empty while unresolved. */
  readonly lladdr: Uint8Array;
  /** NUD_*. */
  readonly state: number;
  /** NTF_*. */
  readonly flags: number;
  /** How long ago its state or MAC address changed, in seconds; undefined: the kernel does not say. */
  readonly changedSecondsAgo: number | undefined;
  /** Index of the bridge an FDB entry belongs to; 0 for none. */
  readonly master: number;
  readonly vlan: number | undefined;
  /** FDB of a VXLAN device, where it is told what the device itself does not say: UDP port and network of the remote end, */
  readonly port: number | undefined;
  readonly vni: number | undefined;
  /** the index of the link to it, */
  readonly via: number | undefined;
  /** and a nexthop object in place of all that. */
  readonly nexthopId: number | undefined;
  /** Attributes we have no name for. */
  readonly unknown: readonly Attribute[];
}

/** An entry to add. */
export interface NeighbourSpec {
  /** Index of the link; of the port for the FDB of a bridge. */
  readonly index: number;
  /** Needed unless `family` is `bridge`; there the remote tunnel end of a VXLAN device. */
  readonly ip?: IpAddress | undefined;
  /** Six bytes. Not for proxy entries. */
  readonly lladdr?: Uint8Array | undefined;
  /** @default that of `ip` */
  readonly family?: NeighbourFamily | undefined;
  /**
   * NUD_*. In the FDB of a bridge NUD_PERMANENT marks an address of the host itself, NUD_NOARP a fixed one behind the
   * port. @default NUD_PERMANENT
   */
  readonly state?: number | undefined;
  /** NTF_*. @default FDB: NTF_SELF, the link's own table; NTF_MASTER means that of the bridge it is a port of */
  readonly flags?: number | undefined;
  /** FDB of a bridge with VLAN filtering. */
  readonly vlan?: number | undefined;
  /** Change an entry that is there, instead of EEXIST. @default false */
  readonly replace?: boolean | undefined;
}

/** Adds a neighbour or an FDB entry. Throws ERR_ENCODE when neither `ip` nor `family` says whose table it is for. */
export function newNeighbour(spec: NeighbourSpec): NetlinkRequest {
  return {
    type: RTM_NEWNEIGH,
    flags: NLM_F_CREATE | (spec.replace ? NLM_F_REPLACE : NLM_F_EXCL),
    operation: 'RTM_NEWNEIGH',
    // Written when something goes wrong: thousands of entries are made at a time.
    get object() {
      return describeNeighbour(spec);
    },
    payload: encodeNeighbour(spec),
  };
}

/**
 * Has the kernel use an entry as the next packet would: it asks for whoever did not answer last. ENOENT when there is
 * none (`isNotFound`).
 */
export function askForNeighbour({ index, ip }: Pick<Neighbour, 'index' | 'ip'>): NetlinkRequest {
  return {
    type: RTM_NEWNEIGH,
    flags: 0,
    operation: 'RTM_NEWNEIGH',
    object: describeNeighbour({ index, ip }),
    payload: encodeNeighbour({ index, ip, state: NUD_NONE, flags: NTF_USE }),
  };
}

/** Removes an entry. ENOENT when there is none (`isNotFound`). FDB entries need `lladdr`, and `ip` if there are several. */
export function deleteNeighbour(
  spec: Pick<NeighbourSpec, 'index' | 'ip' | 'lladdr' | 'family' | 'flags' | 'vlan'>,
): NetlinkRequest {
  return {
    type: RTM_DELNEIGH,
    flags: 0,
    operation: 'RTM_DELNEIGH',
    get object() {
      return describeNeighbour(spec);
    },
    payload: encodeNeighbour(spec),
  };
}

/** What to list; what is left out does not restrict. */
export interface NeighbourFilter {
  /** @default both IP families, not the FDB */
  readonly family?: NeighbourFamily | undefined;
  /** Index of the link. */
  readonly index?: number | undefined;
  /** Index of the bridge. */
  readonly master?: number | undefined;
  /** The proxy entries instead of the others; not for the FDB. @default false */
  readonly proxy?: boolean | undefined;
}

/** The neighbours of the socket's namespace. Throws KernelError, ERR_NETLINK_DECODE. */
export function listNeighbours(netlink: Netlink, filter: NeighbourFilter = {}): Neighbour[] {
  return netlink
    .dump(neighbourListing(filter))
    .filter((payload) => neighbourFamilyOf(ndmsg.decode(payload).ndm_family) !== undefined)
    .map(decodeNeighbour);
}

/** The request behind `listNeighbours`. */
export function neighbourListing(filter: NeighbourFilter): NetlinkRequest {
  return {
    type: RTM_GETNEIGH,
    flags: 0,
    operation: 'RTM_GETNEIGH',
    object: `${filter.family ?? 'all'} neighbours`,
    payload: encodeBody(
      ndmsg,
      {
        ndm_family: filter.family ? neighbourFamilyNumber(filter.family) : AF_UNSPEC,
        ndm_flags: filter.proxy ? NTF_PROXY : 0,
      },
      NDA,
      { NDA_IFINDEX: filter.index, NDA_MASTER: filter.master },
    ),
  };
}

/** Decodes the payload of an RTM_NEWNEIGH of IPv4, IPv6 or an FDB. Throws ERR_NETLINK_DECODE. */
export function decodeNeighbour(payload: Uint8Array): Neighbour {
  const header = ndmsg.decode(payload);
  const family = neighbourFamilyOf(header.ndm_family);
  if (!family) throw decodeError('RTM_NEWNEIGH', `family ${header.ndm_family} is neither IPv4, IPv6 nor bridge`);
  const attributes = NDA.decode(payload, ndmsg.size);
  const { NDA_DST: destination, NDA_CACHEINFO: times } = attributes;
  return {
    family,
    index: header.ndm_ifindex,
    ip: destination && decodeIp(destinationFamily(family, destination), destination, 'NDA_DST'),
    lladdr: attributes.NDA_LLADDR ?? new Uint8Array(),
    state: header.ndm_state,
    flags: header.ndm_flags,
    changedSecondsAgo: times && ndaCacheinfo.decode(times).ndm_updated / USER_HZ,
    master: attributes.NDA_MASTER ?? 0,
    vlan: attributes.NDA_VLAN,
    port: attributes.NDA_PORT,
    vni: attributes.NDA_VNI,
    via: attributes.NDA_IFINDEX,
    nexthopId: attributes.NDA_NH_ID,
    unknown: attributes.unknown,
  };
}

function encodeNeighbour(spec: NeighbourSpec): Uint8Array {
  const family = spec.family ?? spec.ip?.family;
  if (family === undefined) {
    throw new NodeplaneError(
      'ERR_ENCODE',
      `Cannot write the neighbour ${describeNeighbour(spec)}: neither its address nor its family is given`,
    );
  }
  return encodeBody(
    ndmsg,
    {
      ndm_family: neighbourFamilyNumber(family),
      ndm_ifindex: spec.index,
      // Deleting does not look at it.
      ndm_state: spec.state ?? NUD_PERMANENT,
      ndm_flags: spec.flags ?? (family === 'bridge' ? NTF_SELF : 0),
    },
    NDA,
    { NDA_DST: spec.ip?.bytes, NDA_LLADDR: spec.lladdr, NDA_VLAN: spec.vlan },
  );
}

function neighbourFamilyNumber(family: NeighbourFamily): number {
  return family === 'bridge' ? AF_BRIDGE : familyNumber(family);
}

function neighbourFamilyOf(number: number): NeighbourFamily | undefined {
  return number === AF_BRIDGE ? 'bridge' : ipFamilyOf(number);
}

/** A tunnel end in an FDB is of either family; only its length tells. */
function destinationFamily(family: NeighbourFamily, value: Uint8Array): IpFamily {
  if (family !== 'bridge') return family;
  return value.length === 4 ? 'IPv4' : 'IPv6';
}

/** `10.1.0.2 at 02:00:00:00:00:01 on link 7`, for errors. */
function describeNeighbour(spec: NeighbourSpec): string {
  const mac = spec.lladdr && formatMac(spec.lladdr);
  return [spec.ip && formatIp(spec.ip), mac && `at ${mac}`, `on link ${spec.index}`].filter(Boolean).join(' ');
}
