import { type IpFamily, KernelError } from '../../core/index.ts';
import { familyNumber, ipFamilyOf } from '../address-family.ts';
import { encodeNest } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import {
  IPSET_ATTRIBUTES,
  IPSET_FLAG_LIST_HEADER,
  IPSET_FLAG_WITH_COMMENT,
  IPSET_FLAG_WITH_SKBINFO,
  IPSET_PROTOCOL_WITH_INDEX,
  IPSET_SHAPE,
} from '../uapi/ip-set.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from '../uapi/netlink.ts';
import { nfgenmsg } from '../uapi/nfnetlink.ts';
import { AF_UNSPEC } from '../uapi/rtnetlink.ts';
import { ipsetRequest } from './ipset-request.ts';

/** A set, without its members. */
export interface IpSet {
  /** At most 31 bytes. */
  readonly name: string;
  /** `hash:ip,port`, `bitmap:port`: the module ip_set_hash_ipport, ip_set_bitmap_port. */
  readonly type: string;
  /** Of its addresses; undefined for types without. */
  readonly family: IpFamily | undefined;
  /** Members that fit; undefined for bitmaps. */
  readonly maxElements: number | undefined;
  /** Ports of a bitmap:port, both included; undefined for other types. */
  readonly ports: readonly [first: number, last: number] | undefined;
  /** Addresses are looked up by some of their bits alone (netmask, bitmask). @default by all */
  readonly isMasked?: boolean | undefined;
  /** Members may carry firewall marks (extension skbinfo). */
  readonly marks: boolean;
  /** Members may carry comments. @default false */
  readonly comments?: boolean | undefined;
  /** Members may time out: after so many seconds, if added without a time of their own; 0: never. @default none may */
  readonly timeoutSeconds?: number | undefined;
}

/**
 * Makes a set. EEXIST when the name is taken.
 *
 * @param revision of the type; see `getSetTypeRevision`
 */
export function newIpSet(set: IpSet, revision: number): NetlinkRequest {
  const flags = (set.marks ? IPSET_FLAG_WITH_SKBINFO : 0) | (set.comments ? IPSET_FLAG_WITH_COMMENT : 0);
  const shape = {
    IPSET_ATTR_PORT: set.ports?.[0],
    IPSET_ATTR_PORT_TO: set.ports?.[1],
    IPSET_ATTR_MAXELEM: set.maxElements,
    IPSET_ATTR_TIMEOUT: set.timeoutSeconds,
    IPSET_ATTR_CADT_FLAGS: flags === 0 ? undefined : flags,
  };
  const attributes = {
    IPSET_ATTR_SETNAME: set.name,
    IPSET_ATTR_TYPENAME: set.type,
    IPSET_ATTR_REVISION: revision,
    IPSET_ATTR_FAMILY: set.family ? familyNumber(set.family) : AF_UNSPEC,
    IPSET_ATTR_DATA: encodeNest(IPSET_SHAPE, shape),
  };
  return ipsetRequest('IPSET_CMD_CREATE', `"${set.name}" (${set.type})`, attributes, NLM_F_CREATE | NLM_F_EXCL);
}

/** Removes a set with its members. ENOENT when there is none; refused while a rule uses it. */
export function deleteIpSet(name: string): NetlinkRequest {
  // Without the flag newer kernels take "none" for an answer.
  return ipsetRequest('IPSET_CMD_DESTROY', `"${name}"`, { IPSET_ATTR_SETNAME: name }, NLM_F_EXCL);
}

/** Exchanges the names of two sets of one type: rules that use one of them use the other from then on, at one stroke. */
export function swapIpSets(name: string, other: string): NetlinkRequest {
  return ipsetRequest('IPSET_CMD_SWAP', `"${name}" and "${other}"`, {
    IPSET_ATTR_SETNAME: name,
    IPSET_ATTR_TYPENAME: other,
  });
}

/** All sets of the socket's namespace. Throws KernelError, ERR_NETLINK_DECODE. */
export function listIpSets(netlink: Netlink): IpSet[] {
  return netlink.dump(setListing()).map(decodeIpSet);
}

/**
 * The name of the set that has a number in the kernel, as rules of x_tables know it. Undefined when there is none, or this
 * kernel, older than 4.20, cannot be asked. Throws ERR_NETLINK_DECODE.
 */
export function getSetName(netlink: Netlink, index: number): string | undefined {
  try {
    const payload = netlink.query(setByIndex(index));
    nfgenmsg.decode(payload);
    return IPSET_ATTRIBUTES.decode(payload, nfgenmsg.size).IPSET_ATTR_SETNAME;
  } catch (error) {
    if (error instanceof KernelError) return undefined;
    throw error;
  }
}

/** The request behind `getSetName`. */
function setByIndex(index: number): NetlinkRequest {
  return ipsetRequest('IPSET_CMD_GET_BYINDEX', `set ${index}`, {
    IPSET_ATTR_PROTOCOL: IPSET_PROTOCOL_WITH_INDEX,
    IPSET_ATTR_INDEX: index,
  });
}

/** The request behind `listIpSets`. */
function setListing(): NetlinkRequest {
  return ipsetRequest('IPSET_CMD_LIST', 'all sets', { IPSET_ATTR_FLAGS: IPSET_FLAG_LIST_HEADER });
}

/** Exported for tests. */
export function decodeIpSet(payload: Uint8Array): IpSet {
  nfgenmsg.decode(payload);
  const attributes = IPSET_ATTRIBUTES.decode(payload, nfgenmsg.size);
  const { IPSET_ATTR_SETNAME: name, IPSET_ATTR_TYPENAME: type, IPSET_ATTR_DATA: data } = attributes;
  if (name === undefined || type === undefined) throw decodeError('IPSET_CMD_LIST', 'it has no name or no type');
  const shape = IPSET_SHAPE.decode(data ?? new Uint8Array());
  const { IPSET_ATTR_PORT: first, IPSET_ATTR_PORT_TO: last, IPSET_ATTR_CADT_FLAGS: flags = 0 } = shape;
  return {
    name,
    type,
    family: ipFamilyOf(attributes.IPSET_ATTR_FAMILY ?? AF_UNSPEC),
    maxElements: shape.IPSET_ATTR_MAXELEM,
    ports: first === undefined || last === undefined ? undefined : [first, last],
    ...((shape.IPSET_ATTR_NETMASK ?? shape.IPSET_ATTR_BITMASK) !== undefined && { isMasked: true }),
    marks: (flags & IPSET_FLAG_WITH_SKBINFO) !== 0,
    comments: (flags & IPSET_FLAG_WITH_COMMENT) !== 0,
    timeoutSeconds: shape.IPSET_ATTR_TIMEOUT,
  };
}
