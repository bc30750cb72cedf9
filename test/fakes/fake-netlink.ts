import { ByteWriter, NodeplaneError } from '../../src/core/index.ts';
import { appendMessage, type NetlinkMessage, type NetlinkTransport, readMessages } from '../../src/netlink/index.ts';
import { NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_MULTI, NLMSG_DONE, NLMSG_ERROR } from '../../src/netlink/uapi/index.ts';

/** What the kernel would say to the requests of one datagram: each element is one datagram of answers. */
export type Answerer = (requests: readonly NetlinkMessage[]) => readonly Uint8Array[];

/**
 * A kernel for netlink conversations in unit tests: a function from requests to answers. It keeps what it was sent, and
 * says that no answer came when asked for more than there is, where a real socket would time out.
 *
 * @example new Netlink(new FakeNetlink((requests) => [frame(...requests.map((request) => ack(request)))]))
 */
export class FakeNetlink implements NetlinkTransport {
  readonly portId = 4711;
  /** Every datagram sent, with its messages. */
  readonly sent: (readonly NetlinkMessage[])[] = [];
  closed = false;
  readonly #answer: Answerer;
  readonly #queue: Uint8Array[] = [];

  constructor(answer: Answerer) {
    this.#answer = answer;
  }

  /** How many requests were sent so far. */
  get requestCount(): number {
    return this.sent.reduce((sum, requests) => sum + requests.length, 0);
  }

  /** How many datagrams wait to be received. */
  get pending(): number {
    return this.#queue.length;
  }

  send(data: Uint8Array): void {
    // A copy, because the sender reuses its buffer.
    const requests = [...readMessages(Uint8Array.from(data))];
    this.sent.push(requests);
    this.#queue.push(...this.#answer(requests));
  }

  receive(): Uint8Array {
    const datagram = this.#queue.shift();
    if (!datagram)
      throw new NodeplaneError('ERR_NETLINK_SOCKET', 'Cannot receive a netlink answer: the fake has no more');
    return datagram;
  }

  close(): void {
    this.closed = true;
  }
}

/** Puts messages into one datagram. */
export function frame(...messages: readonly NetlinkMessage[]): Uint8Array {
  const writer = new ByteWriter();
  for (const message of messages) appendMessage(writer, message);
  return writer.written();
}

/** The acknowledgement of a request. */
export function ack(request: NetlinkMessage): NetlinkMessage {
  return refuse(request, 0);
}

/** What a refusal says besides its errno. */
export interface Refusal {
  readonly text?: string;
  readonly offset?: number;
}

/** The refusal of a request with a positive errno. */
export function refuse(request: NetlinkMessage, errno: number, extended: Refusal = {}): NetlinkMessage {
  const writer = new ByteWriter();
  writer.u32(-errno);
  appendMessage(writer, { ...request, payload: new Uint8Array() });
  appendExtended(writer, extended);
  const flags = NLM_F_CAPPED | (Object.keys(extended).length > 0 ? NLM_F_ACK_TLVS : 0);
  return { ...request, type: NLMSG_ERROR, flags, payload: writer.written() };
}

/** One object in answer to a request; `flags` adds to NLM_F_MULTI for a part of a dump. */
export function answer(request: NetlinkMessage, type: number, payload: Uint8Array, flags = 0): NetlinkMessage {
  return { ...request, type, flags, payload };
}

/** The end of a dump. */
export function done(request: NetlinkMessage, errno = 0, flags = 0): NetlinkMessage {
  const writer = new ByteWriter();
  writer.u32(-errno);
  return { ...request, type: NLMSG_DONE, flags: NLM_F_MULTI | flags, payload: writer.written() };
}

function appendExtended(writer: ByteWriter, { text, offset }: Refusal): void {
  if (text !== undefined) {
    writer.u16(4 + Buffer.byteLength(text) + 1);
    writer.u16(1);
    writer.cString(text);
    writer.align(4);
  }
  if (offset !== undefined) {
    writer.u16(8);
    writer.u16(2);
    writer.u32(offset);
  }
}
