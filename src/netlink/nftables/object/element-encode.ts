import { NodeplaneError } from '../../../core/index.ts';
import { NLA_F_NESTED, NLA_HDRLEN } from '../../uapi/netlink.ts';
import {
  NFT_SET_ELEM_CATCHALL,
  NFT_SET_ELEM_INTERVAL_END,
  NFTA_DATA_VALUE,
  NFTA_DATA_VERDICT,
  NFTA_LIST_ELEM,
  NFTA_SET_ELEM_DATA,
  NFTA_SET_ELEM_EXPIRATION,
  NFTA_SET_ELEM_FLAGS,
  NFTA_SET_ELEM_KEY,
  NFTA_SET_ELEM_KEY_END,
  NFTA_SET_ELEM_TIMEOUT,
  NFTA_SET_ELEM_USERDATA,
  NFTA_VERDICT_CHAIN,
  NFTA_VERDICT_CODE,
} from '../../uapi/nf-tables.ts';
import type { Verdict } from '../expression/expression.ts';
import { VERDICTS } from '../names.ts';
import type { NftElement } from './model.ts';
import { COMMENT_MAXLEN, UDATA_COMMENT } from './userdata.ts';

/** The value of an attribute is at most this long; multiples of 4 only, because padding counts for the list. */
const LIST_ROOM = 0xffff - NLA_HDRLEN - 3;
/** NFT_DATA_VALUE_MAXLEN: no key or value is longer. */
const DATA_MAXLEN = 64;
/** No element takes more: three values of 64 bytes, a chain's name, a comment, and their headers. */
const ELEMENT_MAX = 1024;

/**
 * Writes elements, as many as fit into the list of one message.
 *
 * The one hot path of a large commit: bytes are stored one by one into memory allocated once, because a call for each
 * attribute made 110,000 elements take three times as long.
 */
export class ElementPacker {
  readonly #memory = Buffer.allocUnsafe(LIST_ROOM);
  readonly #verdicts = new Map<string, Uint8Array>();
  #at = 0;

  /**
   * Writes elements from index `first` on.
   *
   * @param keysOnly leaves out values and comments, which deletions do not need
   * @returns the content of NFTA_SET_ELEM_LIST_ELEMENTS, valid until the next call, and the index of the first element
   *   that did not fit
   * @throws ERR_ENCODE for values longer than the kernel's limits
   */
  pack(
    elements: readonly NftElement[],
    first: number,
    keysOnly: boolean,
  ): { readonly bytes: Uint8Array; readonly next: number } {
    this.#at = 0;
    let next = first;
    while (next < elements.length && (this.#at + ELEMENT_MAX <= LIST_ROOM || next === first)) {
      this.#element(elements[next]!, keysOnly);
      next++;
    }
    return { bytes: this.#memory.subarray(0, this.#at), next };
  }

  /** In the order `nft` writes the attributes. */
  #element(element: NftElement, keysOnly: boolean): void {
    const start = this.#open(NFTA_LIST_ELEM | NLA_F_NESTED);
    const flags =
      (element.intervalEnd ? NFT_SET_ELEM_INTERVAL_END : 0) | (element.catchAll ? NFT_SET_ELEM_CATCHALL : 0);
    if (flags !== 0) this.#be32(NFTA_SET_ELEM_FLAGS, flags);
    if (!keysOnly) {
      if (element.timeoutMs !== undefined) this.#be64(NFTA_SET_ELEM_TIMEOUT, element.timeoutMs);
      if (element.expirationMs !== undefined) this.#be64(NFTA_SET_ELEM_EXPIRATION, element.expirationMs);
    }
    if (!element.catchAll) this.#value(NFTA_SET_ELEM_KEY, element.key);
    if (element.keyEnd !== undefined) this.#value(NFTA_SET_ELEM_KEY_END, element.keyEnd);
    if (!keysOnly) {
      if (element.data !== undefined) this.#value(NFTA_SET_ELEM_DATA, element.data);
      else if (element.verdict !== undefined) this.#copy(this.#verdict(element.verdict));
      if (element.comment !== undefined) this.#comment(element.comment);
    }
    this.#close(start);
  }

  /** A nest with one NFTA_DATA_VALUE. */
  #value(type: number, value: Uint8Array): void {
    if (value.length === 0 || value.length > DATA_MAXLEN) {
      throw new NodeplaneError(
        'ERR_ENCODE',
        `Cannot write ${value.length} bytes as an element: need 1 to ${DATA_MAXLEN}`,
      );
    }
    const start = this.#open(type | NLA_F_NESTED);
    const inner = this.#open(NFTA_DATA_VALUE);
    this.#copy(value);
    this.#close(inner);
    this.#close(start);
  }

  /** NFTA_SET_ELEM_DATA with a verdict. Most elements share one of a few. */
  #verdict(verdict: Verdict): Uint8Array {
    const chain = 'chain' in verdict ? verdict.chain : '';
    const key = `${verdict.kind} ${chain}`;
    const known = this.#verdicts.get(key);
    if (known) return known;
    const name = Buffer.from(`${chain}\0`);
    if (name.length > 256)
      throw new NodeplaneError('ERR_ENCODE', `Cannot write the chain name "${chain}": it is too long`);
    const before = this.#at;
    const data = this.#open(NFTA_SET_ELEM_DATA | NLA_F_NESTED);
    const nest = this.#open(NFTA_DATA_VERDICT | NLA_F_NESTED);
    this.#be32(NFTA_VERDICT_CODE, VERDICTS.numbers[verdict.kind]);
    if (chain !== '') {
      const start = this.#open(NFTA_VERDICT_CHAIN);
      this.#copy(name);
      this.#close(start);
    }
    this.#close(nest);
    this.#close(data);
    const encoded = Uint8Array.from(this.#memory.subarray(before, this.#at));
    this.#at = before;
    this.#verdicts.set(key, encoded);
    return encoded;
  }

  #comment(comment: string): void {
    const start = this.#open(NFTA_SET_ELEM_USERDATA);
    const memory = this.#memory;
    const at = this.#at;
    let length = comment.length;
    if (length > COMMENT_MAXLEN) throw this.#badComment(comment);
    let i = 0;
    for (; i < length; i++) {
      const code = comment.charCodeAt(i);
      if (code === 0 || code > 0x7f) break;
      memory[at + 2 + i] = code;
    }
    if (i < length) {
      length = Buffer.byteLength(comment);
      if (length > COMMENT_MAXLEN || comment.includes('\0')) throw this.#badComment(comment);
      memory.write(comment, at + 2, 'utf8');
    }
    memory[at] = UDATA_COMMENT;
    memory[at + 1] = length + 1;
    memory[at + 2 + length] = 0;
    this.#at = at + 3 + length;
    this.#close(start);
  }

  #badComment(comment: string): NodeplaneError {
    return new NodeplaneError(
      'ERR_ENCODE',
      `Cannot write the comment ${JSON.stringify(comment)}: need at most ${COMMENT_MAXLEN} bytes without NUL`,
    );
  }

  #be32(type: number, value: number): void {
    const start = this.#open(type);
    this.#number(value);
    this.#close(start);
  }

  #be64(type: number, value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new NodeplaneError('ERR_ENCODE', `Cannot write "${value}" as a time: need milliseconds, an integer from 0`);
    }
    const start = this.#open(type);
    this.#number(Math.floor(value / 2 ** 32));
    this.#number(value);
    this.#close(start);
  }

  #number(value: number): void {
    const memory = this.#memory;
    const at = this.#at;
    memory[at] = value >>> 24;
    memory[at + 1] = value >>> 16;
    memory[at + 2] = value >>> 8;
    memory[at + 3] = value;
    this.#at = at + 4;
  }

  #copy(bytes: Uint8Array): void {
    const memory = this.#memory;
    const at = this.#at;
    const length = bytes.length;
    for (let i = 0; i < length; i++) memory[at + i] = bytes[i]!;
    this.#at = at + length;
  }

  #open(type: number): number {
    const at = this.#at;
    this.#memory[at + 2] = type;
    this.#memory[at + 3] = type >>> 8;
    this.#at = at + NLA_HDRLEN;
    return at;
  }

  /** Sets the length and pads to 4 bytes. */
  #close(start: number): void {
    const memory = this.#memory;
    let at = this.#at;
    const length = at - start;
    memory[start] = length;
    memory[start + 1] = length >>> 8;
    while ((at & 3) !== 0) memory[at++] = 0;
    this.#at = at;
  }
}
