import { NodeplaneError } from '../core/index.ts';
import { decodeAcknowledgement, refusal } from './acknowledgement.ts';
import type { NetlinkMessage, NetlinkRequest } from './message.ts';
import { NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NLMSG_MIN_TYPE } from './uapi/netlink.ts';

/** A listing (NLM_F_DUMP) as far as it was read. The kernel refuses another one (EBUSY) until its end was. */
export class Listing {
  readonly payloads: Uint8Array[] = [];
  readonly sequence: number;
  readonly #request: NetlinkRequest;
  #interrupted = false;
  #isOver = false;
  #refusal: NodeplaneError | undefined;

  /** @param sequence the number of its request, which all parts have */
  constructor(request: NetlinkRequest, sequence: number) {
    this.#request = request;
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
      if (message.type >= NLMSG_MIN_TYPE) this.payloads.push(new Uint8Array(message.payload));
      else if (message.type === NLMSG_DONE || message.type === NLMSG_ERROR) {
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
