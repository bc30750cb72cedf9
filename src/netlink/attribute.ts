import { ByteWriter, NodeplaneError, readU16 } from '../core/index.ts';
import { decodeError } from './decode-error.ts';
import { appendInteger, type IntegerType } from './integer.ts';
import { NLA_HDRLEN, NLA_TYPE_MASK, NLMSG_ALIGNTO } from './uapi/netlink.ts';

/*
 * struct nlattr {          // <linux/netlink.h>
 *   __u16 nla_len;         // this header included, padding not
 *   __u16 nla_type;        // bit 15: the value is a nest of attributes; bit 14: it is in network byte order
 * };
 */
const MAX_LENGTH = 0xffff;

/** One attribute as found on the wire. */
export interface Attribute {
  /** The number without the two flag bits. */
  readonly type: number;
  /** A view into the message, not a copy. */
  readonly value: Uint8Array;
}

/**
 * Walks the attributes in `bytes` from `offset` to the end.
 *
 * @param what names the surrounding message or attribute in errors
 * @throws ERR_NETLINK_DECODE when an attribute is shorter than its header or longer than what is left
 */
export function* readAttributes(bytes: Uint8Array, offset: number, what: string): Generator<Attribute> {
  let at = offset;
  while (at < bytes.length) {
    const length = lengthAt(bytes, at, bytes.length, what);
    yield { type: readU16(bytes, at + 2) & NLA_TYPE_MASK, value: bytes.subarray(at + NLA_HDRLEN, at + length) };
    // The padding of the last attribute may be missing.
    at += Math.ceil(length / NLMSG_ALIGNTO) * NLMSG_ALIGNTO;
  }
}

/** The length an attribute gives itself, which is at least that of its header and at most what is left before `end`. */
function lengthAt(bytes: Uint8Array, at: number, end: number, what: string): number {
  const left = end - at;
  if (left < NLA_HDRLEN) throw decodeError(what, `${left} bytes are left, too few for an attribute header`);
  const length = readU16(bytes, at);
  if (length < NLA_HDRLEN || length > left) {
    throw decodeError(what, `the attribute at byte ${at} claims ${length} bytes, ${left} are left`);
  }
  return length;
}

/**
 * Appends attributes to a growing buffer.
 *
 * `type` may carry NLA_F_NESTED. Strings get the NUL the kernel's C code expects. A value too long for the 16-bit length
 * of an attribute, or a string with a NUL inside, throws ERR_ENCODE; `name` is the attribute's name in that message.
 */
export class AttributeWriter {
  /** For what is no attribute: the fixed struct a message begins with. */
  readonly bytes = new ByteWriter();

  integer(type: number, kind: IntegerType, value: number, name: string): void {
    const start = this.nest(type);
    appendInteger(kind, this.bytes, value, name);
    this.end(start, name);
  }

  string(type: number, value: string, name: string): void {
    if (value.includes('\0')) {
      throw new NodeplaneError('ERR_ENCODE', `Cannot write ${JSON.stringify(value)} as ${name}: it contains a NUL`);
    }
    const start = this.nest(type);
    this.bytes.cString(value);
    this.end(start, name);
  }

  blob(type: number, value: Uint8Array, name: string): void {
    const start = this.nest(type);
    this.bytes.bytes(value);
    this.end(start, name);
  }

  /** Opens an attribute whose value is whatever is written until `end`, which gets the number returned here. */
  nest(type: number): number {
    const start = this.bytes.length;
    this.bytes.u16(0);
    this.bytes.u16(type);
    return start;
  }

  /** Writes the length of what `nest` opened, and pads it. */
  end(start: number, name: string): void {
    const length = this.bytes.length - start;
    if (length > MAX_LENGTH) {
      throw new NodeplaneError('ERR_ENCODE', `Cannot write ${length - NLA_HDRLEN} bytes as ${name}: at most 65531 fit`);
    }
    this.bytes.setU16(start, length);
    this.bytes.align(NLMSG_ALIGNTO);
  }
}

/**
 * Looks for one attribute between `start` and `end`, without allocating anything: for listings of 100,000s of objects
 * of which a few bytes are wanted. `readAttributes` is for the others.
 *
 * @param what names the surrounding message or attribute in errors
 * @returns where its nlattr begins; -1 when there is none. Its value lies from `valueStart` to `valueEnd`.
 * @throws ERR_NETLINK_DECODE when an attribute on the way is shorter than its header or longer than what is left
 */
export function findAttribute(bytes: Uint8Array, start: number, end: number, type: number, what: string): number {
  let at = start;
  while (at < end) {
    const length = lengthAt(bytes, at, end, what);
    if ((readU16(bytes, at + 2) & NLA_TYPE_MASK) === type) return at;
    at += Math.ceil(length / NLMSG_ALIGNTO) * NLMSG_ALIGNTO;
  }
  return -1;
}

/** Where the value of the attribute at `at`, found by `findAttribute`, begins. */
export function valueStart(at: number): number {
  return at + NLA_HDRLEN;
}

/** Where the value of the attribute at `at`, found by `findAttribute`, ends. */
export function valueEnd(bytes: Uint8Array, at: number): number {
  return at + readU16(bytes, at);
}
