import { setImmediate as eventLoop } from 'node:timers/promises';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { NFTA_SET_ELEM_LIST } from '../uapi/nf-tables.ts';
import { nfgenmsg } from '../uapi/nfnetlink.ts';
import { listInSlices } from '../with-netlink.ts';
import { decodeElements } from './object/element-decode.ts';
import type { NftElement } from './object/model.ts';

/** Messages decoded at once: each holds some 400 elements. */
const DECODED_AT_ONCE = 8;

/** Long listings, one after the other, between which and during which the event loop runs. */
export class DumpQueue {
  readonly #netlink: Netlink;
  #last: Promise<unknown> = Promise.resolve();

  /** `netlink` is used for nothing else. */
  constructor(netlink: Netlink) {
    this.#netlink = netlink;
  }

  /** The elements in answer to a listing of elements. */
  listElements(request: NetlinkRequest): Promise<NftElement[]> {
    return this.#enqueue(() => this.#listElements(request));
  }

  /** What `decode` makes of each message in answer to a listing, without what it makes nothing of. */
  list<T>(request: NetlinkRequest, decode: (payload: Uint8Array) => T | undefined): Promise<T[]> {
    return this.#enqueue(() => listInSlices(this.#netlink, request, decode));
  }

  close(): void {
    this.#netlink.close();
  }

  #enqueue<T>(list: () => Promise<T>): Promise<T> {
    const listed = this.#last.then(list, list);
    this.#last = listed.catch(() => undefined);
    return listed;
  }

  async #listElements(request: NetlinkRequest): Promise<NftElement[]> {
    const payloads = await this.#netlink.dumpAsync(request, eventLoop);
    const elements: NftElement[] = [];
    for (const [index, payload] of payloads.entries()) {
      const { NFTA_SET_ELEM_LIST_ELEMENTS: list } = NFTA_SET_ELEM_LIST.decode(payload, nfgenmsg.size);
      if (list) decodeElements(list, elements);
      if (index % DECODED_AT_ONCE === DECODED_AT_ONCE - 1) await eventLoop();
    }
    return elements;
  }
}
