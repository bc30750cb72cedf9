import { type ByteWriter, type ErrnoMeaning, readU16, readU32 } from '../core/index.ts';
import { decodeError } from './decode-error.ts';
import { NLMSG_ALIGNTO, NLMSG_HDRLEN } from './uapi/netlink.ts';

/** What to ask the kernel, made by an encoder and sent by a `Netlink` conversation. */
export interface NetlinkRequest {
  /** nlmsg_type. */
  readonly type: number;
  /** nlmsg_flags beyond NLM_F_REQUEST, NLM_F_ACK and NLM_F_DUMP, which the conversation adds. */
  readonly flags: number;
  /** The kernel's name of the type, for errors: `RTM_NEWLINK`. */
  readonly operation: string;
  /** What it is about, for errors: `veth "veth1a2b" with peer "eth0"`. */
  readonly object: string;
  /** The body after the nlmsghdr. */
  readonly payload: Uint8Array;
  /** What errnos mean that only this subsystem has. */
  readonly ownErrors?: ReadonlyMap<number, ErrnoMeaning>;
}

/** One message found in a datagram. */
export interface NetlinkMessage {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  readonly portId: number;
  /** A view into the datagram, not a copy. */
  readonly payload: Uint8Array;
}

/** Appends one message, padded so that another may follow. */
export function appendMessage(writer: ByteWriter, message: NetlinkMessage): void {
  const { type, flags, sequence, portId, payload } = message;
  // The fields of nlmsghdr one by one, here and in `readMessages`: thousands go out and come in at a time, and by the table each
  // takes as long as its payload.
  writer.u32(NLMSG_HDRLEN + payload.length);
  writer.u16(type);
  writer.u16(flags);
  writer.u32(sequence);
  writer.u32(portId);
  writer.bytes(payload);
  writer.align(NLMSG_ALIGNTO);
}

/**
 * Walks the messages of a datagram.
 *
 * @throws ERR_NETLINK_DECODE when a message is shorter than its header or longer than what is left
 */
export function* readMessages(datagram: Uint8Array): Generator<NetlinkMessage> {
  let at = 0;
  while (at < datagram.length) {
    const left = datagram.length - at;
    if (left < NLMSG_HDRLEN) throw decodeError('datagram', `${left} bytes are left, too few for a message header`);
    const length = readU32(datagram, at);
    if (length < NLMSG_HDRLEN || length > left) {
      throw decodeError('datagram', `the message at byte ${at} claims ${length} bytes, ${left} are left`);
    }
    yield {
      type: readU16(datagram, at + 4),
      flags: readU16(datagram, at + 6),
      sequence: readU32(datagram, at + 8),
      portId: readU32(datagram, at + 12),
      payload: datagram.subarray(at + NLMSG_HDRLEN, at + length),
    };
    // The padding of the last message may be missing.
    at += Math.ceil(length / NLMSG_ALIGNTO) * NLMSG_ALIGNTO;
  }
}
