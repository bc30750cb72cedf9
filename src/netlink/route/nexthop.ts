import { formatIp, type IpAddress, type IpFamily } from '../../core/index.ts';
import { decodeIp, familyNumber, ipFamilyOf } from '../address-family.ts';
import type { Attribute } from '../attribute.ts';
import { encodeBody } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE } from '../uapi/netlink.ts';
import { NHA, nhmsg } from '../uapi/nexthop.ts';
import {
  AF_UNSPEC,
  RTM_DELNEXTHOP,
  RTM_GETNEXTHOP,
  RTM_NEWNEXTHOP,
  RTNH_F_ONLINK,
  RTPROT_STATIC,
} from '../uapi/rtnetlink.ts';

/** A nexthop object as the kernel describes it. */
export interface Nexthop {
  /** Of all nexthops of the namespace, whoever made them; 1 or more. */
  readonly id: number;
  /** Undefined for a group, whose members are in `unknown`. */
  readonly family: IpFamily | undefined;
  /** Undefined for a group, a blackhole, and one that is on the link itself. */
  readonly gateway: IpAddress | undefined;
  /** Index of the link; 0 for a group or a blackhole. */
  readonly outInterface: number;
  /** The gateway counts as directly reachable although no prefix of the link contains it. */
  readonly onlink: boolean;
  /** RTPROT_*: who added it. */
  readonly protocol: number;
  /** Attributes we have no name for. */
  readonly unknown: readonly Attribute[];
}

/** A nexthop to make. */
export interface NexthopSpec {
  /** 1 to 2^32 - 1. Everybody in the namespace draws on the same numbers. */
  readonly id: number;
  readonly gateway: IpAddress;
  /** Index of the link, which must be up and have a carrier (ENETDOWN). */
  readonly outInterface: number;
  /** Do not require a prefix of the link to contain the gateway. @default false */
  readonly onlink?: boolean | undefined;
  /** RTPROT_*. @default RTPROT_STATIC */
  readonly protocol?: number | undefined;
  /** Change the one with this id, and with it where all its routes go, instead of EEXIST. @default false */
  readonly replace?: boolean | undefined;
}

/**
 * Makes a nexthop object for routes to name (`RouteSpec.nexthopId`). EOPNOTSUPP (`isUnsupported`) before Linux 5.3.
 *
 * Adding an IPv4 route with a gateway of its own takes a walk over all gateways of its link, because the kernel keeps them in
 * one hash chain a link; a route by nexthop object takes none. The object goes when its link goes down or loses its carrier,
 * and its routes with it, while routes with a gateway of their own live through the loss of a carrier; the kernel tells of
 * neither.
 */
export function newNexthop(spec: NexthopSpec): NetlinkRequest {
  return {
    type: RTM_NEWNEXTHOP,
    flags: NLM_F_CREATE | (spec.replace ? NLM_F_REPLACE : NLM_F_EXCL),
    operation: 'RTM_NEWNEXTHOP',
    // Written when something goes wrong: thousands are made at a time.
    get object() {
      return `nexthop ${spec.id} via ${formatIp(spec.gateway)} on link ${spec.outInterface}`;
    },
    payload: encodeBody(
      nhmsg,
      {
        nh_family: familyNumber(spec.gateway.family),
        nh_protocol: spec.protocol ?? RTPROT_STATIC,
        nh_flags: spec.onlink ? RTNH_F_ONLINK : 0,
      },
      NHA,
      { NHA_ID: spec.id, NHA_GATEWAY: spec.gateway.bytes, NHA_OIF: spec.outInterface },
    ),
  };
}

/** Removes a nexthop, and all routes that go by it. ENOENT when there is none (`isNotFound`). */
export function deleteNexthop(id: number): NetlinkRequest {
  return nexthopRequest(RTM_DELNEXTHOP, 'RTM_DELNEXTHOP', id);
}

/** What to list; what is left out does not restrict. */
export interface NexthopFilter {
  readonly family?: IpFamily | undefined;
  /** Index of the link. */
  readonly outInterface?: number | undefined;
}

/**
 * The nexthops of the socket's namespace, in the order of their ids.
 *
 * @throws KernelError EOPNOTSUPP (`isUnsupported`) before Linux 5.3; ERR_NETLINK_DECODE
 */
export function listNexthops(netlink: Netlink, filter: NexthopFilter = {}): Nexthop[] {
  return netlink.dump(nexthopListing(filter)).map(decodeNexthop);
}

/** The request behind `listNexthops`. */
export function nexthopListing(filter: NexthopFilter): NetlinkRequest {
  return {
    type: RTM_GETNEXTHOP,
    flags: 0,
    operation: 'RTM_GETNEXTHOP',
    object: filter.outInterface === undefined ? 'all nexthops' : `nexthops on link ${filter.outInterface}`,
    payload: encodeBody(nhmsg, { nh_family: filter.family ? familyNumber(filter.family) : AF_UNSPEC }, NHA, {
      NHA_OIF: filter.outInterface,
    }),
  };
}

/** Decodes the payload of an RTM_NEWNEXTHOP. Throws ERR_NETLINK_DECODE. */
export function decodeNexthop(payload: Uint8Array): Nexthop {
  const header = nhmsg.decode(payload);
  const { NHA_ID: id, NHA_GATEWAY: gateway, NHA_OIF: link, unknown } = NHA.decode(payload, nhmsg.size);
  if (id === undefined) throw decodeError('RTM_NEWNEXTHOP', 'it has no NHA_ID');
  const family = ipFamilyOf(header.nh_family);
  return {
    id,
    family,
    gateway: family && gateway && decodeIp(family, gateway, 'NHA_GATEWAY'),
    outInterface: link ?? 0,
    onlink: (header.nh_flags & RTNH_F_ONLINK) !== 0,
    protocol: header.nh_protocol,
    unknown,
  };
}

/** The kernel insists on a header of zeros here. */
function nexthopRequest(type: number, operation: string, id: number): NetlinkRequest {
  return {
    type,
    flags: 0,
    operation,
    object: `nexthop ${id}`,
    payload: encodeBody(nhmsg, {}, NHA, { NHA_ID: id }),
  };
}
