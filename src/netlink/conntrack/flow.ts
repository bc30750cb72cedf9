import { type IpAddress, type IpFamily, readBe16, readBe32 } from '../../core/index.ts';
import { decodeIp, ipFamilyOf } from '../address-family.ts';
import { findAttribute, valueEnd, valueStart } from '../attribute.ts';
import { decodeError } from '../decode-error.ts';
import { nfgenmsg } from '../uapi/nfnetlink.ts';
import {
  CTA_ID,
  CTA_IP_V4_DST,
  CTA_IP_V4_SRC,
  CTA_IP_V6_DST,
  CTA_IP_V6_SRC,
  CTA_PROTO_DST_PORT,
  CTA_PROTO_NUM,
  CTA_PROTO_SRC_PORT,
  CTA_PROTOINFO,
  CTA_PROTOINFO_TCP,
  CTA_PROTOINFO_TCP_STATE,
  CTA_STATUS,
  CTA_TUPLE_IP,
  CTA_TUPLE_ORIG,
  CTA_TUPLE_PROTO,
  CTA_TUPLE_REPLY,
  CTA_ZONE,
  IPS_SEEN_REPLY,
  TCP_CONNTRACK_TIME_WAIT,
} from '../uapi/nfnetlink-conntrack.ts';

/** One direction of a flow. Ports are 0 for protocols that have none. */
export interface FlowDirection {
  readonly source: IpAddress;
  readonly destination: IpAddress;
  readonly sourcePort: number;
  readonly destinationPort: number;
}

/** A tracked flow. */
export interface Flow {
  readonly family: IpFamily;
  /** IPPROTO_*. */
  readonly protocol: number;
  /** As its first packet came in, before any translation. */
  readonly original: FlowDirection;
  /** As its answers come in: the source is who really serves it, after DNAT. */
  readonly reply: FlowDirection;
  /**
   * The kernel's number of this entry. A later flow with the same addresses has another one, unless it was given the
   * memory of the first.
   */
  readonly id: number;
  /** Conntrack zone; 0 for the usual one. */
  readonly zone: number;
  /** The value of CTA_TUPLE_ORIG, which names the flow when it is deleted. A view into the message. */
  readonly tuple: Uint8Array;
}

/**
 * Whether a flow is worth decoding, told from what is cheap to read: IPPROTO_* and the port its first packet went to
 * (0 for protocols without ports).
 */
export type FlowFilter = (protocol: number, destinationPort: number) => boolean;

/** What a filter says of the payload of an IPCTNL_MSG_CT_NEW, by a few reads in place. Throws ERR_NETLINK_DECODE. */
export function passesFilter(payload: Uint8Array, filter: FlowFilter): boolean {
  const original = originalTuple(payload);
  return filter(tupleProtocol(payload, original), port(payload, original, CTA_PROTO_DST_PORT));
}

/** Decodes the payload of an IPCTNL_MSG_CT_NEW of IPv4 or IPv6. Throws ERR_NETLINK_DECODE. */
export function decodeFlow(payload: Uint8Array): Flow {
  const original = originalTuple(payload);
  const reply = needAttribute(payload, nfgenmsg.size, payload.length, CTA_TUPLE_REPLY, 'CTA_TUPLE_REPLY');
  const { nfgen_family: number } = nfgenmsg.decode(payload);
  const family = ipFamilyOf(number);
  if (!family) throw decodeError('IPCTNL_MSG_CT_NEW', `family ${number} is neither IPv4 nor IPv6`);
  return {
    family,
    protocol: tupleProtocol(payload, original),
    original: direction(family, payload, original),
    reply: direction(family, payload, reply),
    id: topLevelInteger(payload, CTA_ID, 4, 'CTA_ID'),
    zone: topLevelInteger(payload, CTA_ZONE, 2, 'CTA_ZONE'),
    tuple: payload.subarray(valueStart(original), valueEnd(payload, original)),
  };
}

/** IPS_* bits of the payload of an IPCTNL_MSG_CT_NEW; 0 when it does not say. Throws ERR_NETLINK_DECODE. */
export function flowStatus(payload: Uint8Array): number {
  return topLevelInteger(payload, CTA_STATUS, 4, 'CTA_STATUS');
}

/** Whether the payload of an IPCTNL_MSG_CT_NEW is of a flow of which anything ever came back. Throws ERR_NETLINK_DECODE. */
export function isAnswered(payload: Uint8Array): boolean {
  return (flowStatus(payload) & IPS_SEEN_REPLY) !== 0;
}

/** Whether the payload of an IPCTNL_MSG_CT_NEW is of a TCP connection that both sides have ended. */
export function isInTimeWait(payload: Uint8Array): boolean {
  let [start, end] = [nfgenmsg.size, payload.length];
  for (const type of [CTA_PROTOINFO, CTA_PROTOINFO_TCP, CTA_PROTOINFO_TCP_STATE]) {
    const at = findAttribute(payload, start, end, type, 'IPCTNL_MSG_CT_NEW');
    if (at < 0) return false;
    [start, end] = [valueStart(at), valueEnd(payload, at)];
  }
  return payload[start] === TCP_CONNTRACK_TIME_WAIT;
}

function originalTuple(payload: Uint8Array): number {
  return needAttribute(payload, nfgenmsg.size, payload.length, CTA_TUPLE_ORIG, 'CTA_TUPLE_ORIG');
}

/** Where an attribute that must be there begins. Throws ERR_NETLINK_DECODE, as those below. */
export function needAttribute(bytes: Uint8Array, start: number, end: number, type: number, name: string): number {
  const at = findAttribute(bytes, start, end, type, name);
  if (at < 0) throw decodeError('IPCTNL_MSG_CT_NEW', `${name} is missing`);
  return at;
}

/** The same inside of another. */
export function needWithin(bytes: Uint8Array, outer: number, type: number, name: string): number {
  return needAttribute(bytes, valueStart(outer), valueEnd(bytes, outer), type, name);
}

/** IPPROTO_* of a tuple. */
export function tupleProtocol(bytes: Uint8Array, tuple: number): number {
  const at = needWithin(
    bytes,
    needWithin(bytes, tuple, CTA_TUPLE_PROTO, 'CTA_TUPLE_PROTO'),
    CTA_PROTO_NUM,
    'CTA_PROTO_NUM',
  );
  return integer(bytes, at, 1, 'CTA_PROTO_NUM');
}

/** A port of a tuple; 0 when there is none: ICMP has types and codes instead. */
export function port(bytes: Uint8Array, tuple: number, type: number): number {
  const proto = needWithin(bytes, tuple, CTA_TUPLE_PROTO, 'CTA_TUPLE_PROTO');
  const at = findAttribute(bytes, valueStart(proto), valueEnd(bytes, proto), type, 'CTA_TUPLE_PROTO');
  return at < 0 ? 0 : integer(bytes, at, 2, type === CTA_PROTO_SRC_PORT ? 'CTA_PROTO_SRC_PORT' : 'CTA_PROTO_DST_PORT');
}

function direction(family: IpFamily, bytes: Uint8Array, tuple: number): FlowDirection {
  const ip = needWithin(bytes, tuple, CTA_TUPLE_IP, 'CTA_TUPLE_IP');
  const address = (v4: number, v6: number, name: string): IpAddress => {
    const at = needWithin(bytes, ip, family === 'IPv4' ? v4 : v6, name);
    return decodeIp(family, bytes.subarray(valueStart(at), valueEnd(bytes, at)), name);
  };
  return {
    source: address(CTA_IP_V4_SRC, CTA_IP_V6_SRC, 'the source of CTA_TUPLE_IP'),
    destination: address(CTA_IP_V4_DST, CTA_IP_V6_DST, 'the destination of CTA_TUPLE_IP'),
    sourcePort: port(bytes, tuple, CTA_PROTO_SRC_PORT),
    destinationPort: port(bytes, tuple, CTA_PROTO_DST_PORT),
  };
}

/** 0 when it is not there. */
export function topLevelInteger(bytes: Uint8Array, type: number, size: 2 | 4, name: string): number {
  const at = findAttribute(bytes, nfgenmsg.size, bytes.length, type, 'IPCTNL_MSG_CT_NEW');
  return at < 0 ? 0 : integer(bytes, at, size, name);
}

/** A value in network order of a width that must be right. */
function integer(bytes: Uint8Array, at: number, size: 1 | 2 | 4, name: string): number {
  const start = valueStart(at);
  const found = valueEnd(bytes, at) - start;
  if (found !== size) throw decodeError(name, `it has ${found} bytes, expected ${size}`);
  return size === 1 ? bytes[start]! : size === 2 ? readBe16(bytes, start) : readBe32(bytes, start);
}
