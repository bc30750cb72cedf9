import { KernelError, NodeplaneError } from '../core/index.ts';
import { attributeSet } from './attribute-set.ts';
import { decodeError } from './decode-error.ts';
import type { NetlinkMessage, NetlinkRequest } from './message.ts';
import {
  NLM_F_ACK_TLVS,
  NLM_F_CAPPED,
  NLM_F_DUMP_INTR,
  NLMSG_ALIGNTO,
  NLMSG_DONE,
  NLMSG_ERROR,
  NLMSG_HDRLEN,
  NLMSG_MIN_TYPE,
  nlmsgerr,
  nlmsghdr,
} from './uapi/netlink.ts';

/** Attributes of an extended acknowledgement (enum nlmsgerr_attrs of <linux/netlink.h>). */
const NLMSGERR_ATTR = attributeSet('NLMSGERR_ATTR', {
  NLMSGERR_ATTR_MSG: [1, 'string'],
  NLMSGERR_ATTR_OFFS: [2, 'u32'],
  NLMSGERR_ATTR_MISS_TYPE: [5, 'u32'],
});

/** What an NLMSG_ERROR or NLMSG_DONE says about a request. */
export interface Acknowledgement {
  /** 0 for success, else the positive errno. */
  readonly errno: number;
  /** The kernel's own sentence. */
  readonly extAck: string | undefined;
  /** Byte offset, counted from the request's nlmsghdr, of the attribute the kernel objected to. */
  readonly offset: number | undefined;
}

/**
 * Decodes the payload of an NLMSG_ERROR (which acknowledges with errno 0) or NLMSG_DONE.
 *
 * Layout: s32 negative errno; in NLMSG_ERROR then the request's nlmsghdr and, unless NLM_F_CAPPED, its payload; with
 * NLM_F_ACK_TLVS then attributes.
 *
 * @throws ERR_NETLINK_DECODE
 */
export function decodeAcknowledgement(message: NetlinkMessage): Acknowledgement {
  const { type, flags, payload } = message;
  // Old kernels end some dumps with an empty NLMSG_DONE.
  if (type === NLMSG_DONE && payload.length === 0) return { errno: 0, extAck: undefined, offset: undefined };
  const { error } = nlmsgerr.decode(payload);
  if (error > 0) throw decodeError('acknowledgement', `the error is ${error}, expected 0 or a negative errno`);
  // -0 would not equal 0 for those who compare with Object.is.
  const errno = error === 0 ? 0 : -error;
  if ((flags & NLM_F_ACK_TLVS) === 0) return { errno, extAck: undefined, offset: undefined };
  const attributes = NLMSGERR_ATTR.decode(payload, attributesOffset(message));
  const missing = attributes.NLMSGERR_ATTR_MISS_TYPE;
  return {
    errno,
    extAck: attributes.NLMSGERR_ATTR_MSG ?? (missing === undefined ? undefined : `attribute ${missing} is missing`),
    offset: attributes.NLMSGERR_ATTR_OFFS,
  };
}

/** The refusal as an error that says what was asked. */
export function refusal(request: NetlinkRequest, { errno, extAck, offset }: Acknowledgement): KernelError {
  const { operation, object } = request;
  const meaning = request.ownErrors?.get(errno);
  return new KernelError('ERR_NETLINK_ACK', { operation, object, errno, meaning, extAck, offset });
}

function attributesOffset({ type, flags, payload }: NetlinkMessage): number {
  if (type === NLMSG_DONE) return nlmsgerr.size;
  const echoed = nlmsghdr.decode(payload, nlmsgerr.size).nlmsg_len;
  const echoedLength = (flags & NLM_F_CAPPED) !== 0 ? NLMSG_HDRLEN : Math.max(echoed, NLMSG_HDRLEN);
  return nlmsgerr.size + Math.ceil(echoedLength / NLMSG_ALIGNTO) * NLMSG_ALIGNTO;
}

/** Whether a payload is wanted of a listing of which most is not; it is a view, valid for this call. */
export type PayloadFilter = (payload: Uint8Array) => boolean;

/** A listing (NLM_F_DUMP) as far as it was read. The kernel refuses another one (EBUSY) until its end was. */
export class Listing {
  readonly payloads: Uint8Array[] = [];
  readonly sequence: number;
  readonly #request: NetlinkRequest;
  readonly #isWanted: PayloadFilter | undefined;
  #interrupted = false;
  #isOver = false;
  #refusal: NodeplaneError | undefined;

  /**
   * @param sequence the number of its request, which all parts have
   * @param isWanted what of it is kept. @default all
   */
  constructor(request: NetlinkRequest, sequence: number, isWanted?: PayloadFilter) {
    this.#request = request;
    this.#isWanted = isWanted;
    this.sequence = sequence;
  }

  /** Whether the end was read. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Takes the messages of one datagram. */
  take(messages: Iterable<NetlinkMessage>): void {
    for (const message of messages) {
      this.#interrupted ||= (message.flags & NLM_F_DUMP_INTR) !== 0;
      if (message.type >= NLMSG_MIN_TYPE) {
        if (this.#isWanted?.(message.payload) ?? true) this.payloads.push(new Uint8Array(message.payload));
      } else if (message.type === NLMSG_DONE || message.type === NLMSG_ERROR) {
        this.#isOver = true;
        const answer = decodeAcknowledgement(message);
        if (answer.errno !== 0) this.#refusal = refusal(this.#request, answer);
        return;
      }
    }
  }

  /** Whether it is over, and the kernel did not flag it as interrupted. Throws KernelError when it was refused. */
  get isWhole(): boolean {
    if (this.#refusal) throw this.#refusal;
    return this.#isOver && !this.#interrupted;
  }
}

/** Why a listing is given up that was flagged as interrupted each time it was read. */
export function keptChanging({ operation, object }: NetlinkRequest, readings: number): NodeplaneError {
  return new NodeplaneError(
    'ERR_NETLINK_DUMP_INTERRUPTED',
    `${operation} ${object}: changed during each of ${readings} readings; try again`,
    { facts: { operation, object } },
  );
}
