import { type IpAddress, ipFromBytes } from '../../core/index.ts';
import { readAttributes } from '../attribute.ts';
import { type AttributeValues, encodeNest } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { IPSET_ATTR_DATA, IPSET_ATTRIBUTES, IPSET_FLAG_NOMATCH, IPSET_MEMBER } from '../uapi/ip-set.ts';
import { nfgenmsg } from '../uapi/nfnetlink.ts';
import { ipsetRequest } from './ipset-request.ts';

type MemberOperation = 'IPSET_CMD_ADD' | 'IPSET_CMD_DEL';

/** A member of a set: what its type asks for. */
export interface SetMember {
  readonly address?: IpAddress | undefined;
  /** Of the network that it is in types with `net` in its place. Only read, never written. */
  readonly prefixLength?: number | undefined;
  /** IPPROTO_*. */
  readonly protocol?: number | undefined;
  readonly port?: number | undefined;
  /** The second address of `hash:ip,port,ip`, or the network of `hash:ip,port,net`. */
  readonly second?: IpAddress | undefined;
  /** Of that network. The kernel takes none for a single address and refuses 0. */
  readonly secondPrefixLength?: number | undefined;
  /** Seconds it has left; 0: it stays. Only in sets made with timeouts. */
  readonly timeoutSeconds?: number | undefined;
  /** At most 255 bytes. Only in sets made with comments. */
  readonly comment?: string | undefined;
  /** Replaces the mark of packets that a rule with `--map-mark` finds here. */
  readonly mark?: number | undefined;
  /** Its bits that are replaced. Only read, never written. @default all */
  readonly markMask?: number | undefined;
  /** What it matches is not in the set (nomatch). Only read, never written. @default it is */
  readonly isException?: boolean | undefined;
}

/** Adds a member; one that is there already gets the new mark. ENOENT without the set; refused when it is full. */
export function addMember(set: string, member: SetMember): NetlinkRequest {
  return memberRequest('IPSET_CMD_ADD', set, member);
}

/** Removes a member; none there is no error. ENOENT without the set. */
export function deleteMember(set: string, member: SetMember): NetlinkRequest {
  return memberRequest('IPSET_CMD_DEL', set, keyOf(member));
}

/** The members of one set. Throws KernelError, ENOENT (`isNotFound`) when there is none; ERR_NETLINK_DECODE. */
export function listMembers(netlink: Netlink, set: string): SetMember[] {
  return netlink.dump(memberListing(set)).flatMap(decodeMembers);
}

/** The request behind `listMembers`. */
function memberListing(set: string): NetlinkRequest {
  return ipsetRequest('IPSET_CMD_LIST', `members of "${set}"`, { IPSET_ATTR_SETNAME: set });
}

/** The members in one part of a listing. Exported for tests. */
export function decodeMembers(payload: Uint8Array): SetMember[] {
  nfgenmsg.decode(payload);
  const { IPSET_ATTR_ADT } = IPSET_ATTRIBUTES.decode(payload, nfgenmsg.size);
  const members: SetMember[] = [];
  for (const { type, value } of readAttributes(IPSET_ATTR_ADT ?? new Uint8Array(), 0, 'IPSET_ATTR_ADT')) {
    if (type === IPSET_ATTR_DATA) members.push(decodeMember(value));
  }
  return members;
}

function decodeMember(value: Uint8Array): SetMember {
  const member = IPSET_MEMBER.decode(value);
  return {
    address: decodeAddress(member.IPSET_ATTR_IP, 'IPSET_ATTR_IP'),
    prefixLength: member.IPSET_ATTR_CIDR,
    protocol: member.IPSET_ATTR_PROTO,
    port: member.IPSET_ATTR_PORT,
    second: decodeAddress(member.IPSET_ATTR_IP2, 'IPSET_ATTR_IP2'),
    secondPrefixLength: member.IPSET_ATTR_CIDR2,
    timeoutSeconds: member.IPSET_ATTR_TIMEOUT,
    comment: member.IPSET_ATTR_COMMENT,
    ...decodeMark(member.IPSET_ATTR_SKBMARK),
    ...(((member.IPSET_ATTR_CADT_FLAGS ?? 0) & IPSET_FLAG_NOMATCH) !== 0 && { isException: true }),
  };
}

function memberRequest(operation: MemberOperation, set: string, member: SetMember): NetlinkRequest {
  const data = encodeNest(IPSET_MEMBER, memberAttributes(member));
  return ipsetRequest(operation, `member of "${set}"`, { IPSET_ATTR_SETNAME: set, IPSET_ATTR_DATA: data });
}

/** What tells one member from another. */
function keyOf(member: SetMember): SetMember {
  return { ...member, mark: undefined, timeoutSeconds: undefined, comment: undefined };
}

function memberAttributes(member: SetMember): AttributeValues<(typeof IPSET_MEMBER)['declarations']> {
  return {
    IPSET_ATTR_IP: member.address && encodeAddress(member.address),
    IPSET_ATTR_PORT: member.port,
    IPSET_ATTR_PROTO: member.protocol,
    IPSET_ATTR_IP2: member.second && encodeAddress(member.second),
    IPSET_ATTR_CIDR2: member.secondPrefixLength,
    IPSET_ATTR_TIMEOUT: member.timeoutSeconds,
    IPSET_ATTR_COMMENT: member.comment,
    IPSET_ATTR_SKBMARK: member.mark === undefined ? undefined : encodeMark(member.mark),
  };
}

function encodeAddress({ family, bytes }: IpAddress) {
  return family === 'IPv4' ? { IPSET_ATTR_IPADDR_IPV4: bytes } : { IPSET_ATTR_IPADDR_IPV6: bytes };
}

function decodeAddress(
  value: { IPSET_ATTR_IPADDR_IPV4?: Uint8Array; IPSET_ATTR_IPADDR_IPV6?: Uint8Array } | undefined,
  name: string,
): IpAddress | undefined {
  if (!value) return undefined;
  const { IPSET_ATTR_IPADDR_IPV4: v4, IPSET_ATTR_IPADDR_IPV6: v6 } = value;
  if (v4?.length === 4) return ipFromBytes(v4);
  if (v6?.length === 16) return ipFromBytes(v6);
  throw decodeError(name, 'it is neither an IPv4 nor an IPv6 address');
}

/** The mark, and that all its bits count. */
function encodeMark(mark: number): Uint8Array {
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, mark);
  view.setUint32(4, 0xffff_ffff);
  return bytes;
}

/** The kernel leaves out, or shows as 0 of no bits, what a member does not have. */
function decodeMark(value: Uint8Array | undefined): Pick<SetMember, 'mark' | 'markMask'> {
  if (!value) return { mark: undefined };
  if (value.length !== 8) throw decodeError('IPSET_ATTR_SKBMARK', `it has ${value.length} bytes, expected 8`);
  const view = new DataView(value.buffer, value.byteOffset, 8);
  const [mark, markMask] = [view.getUint32(0), view.getUint32(4)];
  if (markMask === 0) return { mark: undefined };
  return markMask === 0xffff_ffff ? { mark } : { mark, markMask };
}
