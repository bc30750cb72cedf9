import { readU16 } from '../core/index.ts';
import { decodeError } from './decode-error.ts';
import { NLA_HDRLEN, NLA_TYPE_MASK, NLMSG_ALIGNTO } from './uapi/netlink.ts';

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
    const left = end - at;
    if (left < NLA_HDRLEN) throw decodeError(what, `${left} bytes are left, too few for an attribute header`);
    const length = readU16(bytes, at);
    if (length < NLA_HDRLEN || length > left) {
      throw decodeError(what, `the attribute at byte ${at} claims ${length} bytes, ${left} are left`);
    }
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
