import { atOnce, readU16, type Steps } from '../../core/index.ts';
import { AttributeWriter } from '../attribute.ts';
import {
  NLA_HDRLEN,
  NLA_TYPE_MASK,
  NLM_F_ACK,
  NLM_F_APPEND,
  NLM_F_CREATE,
  NLM_F_ECHO,
  NLM_F_EXCL,
  NLM_F_REPLACE,
  NLM_F_REQUEST,
  NLMSG_HDRLEN,
} from '../uapi/netlink.ts';
import {
  NFNL_SUBSYS_NFTABLES,
  NFT_MSG_DELCHAIN,
  NFT_MSG_DELOBJ,
  NFT_MSG_DELRULE,
  NFT_MSG_DELSET,
  NFT_MSG_DELSETELEM,
  NFT_MSG_DELTABLE,
  NFT_MSG_DESTROYOBJ,
  NFT_MSG_DESTROYRULE,
  NFT_MSG_DESTROYSET,
  NFT_MSG_DESTROYSETELEM,
  NFT_MSG_NEWCHAIN,
  NFT_MSG_NEWOBJ,
  NFT_MSG_NEWRULE,
  NFT_MSG_NEWSET,
  NFT_MSG_NEWSETELEM,
  NFT_MSG_NEWTABLE,
  NFTA_SET_ELEM_LIST,
  NFTA_SET_ELEM_LIST_ELEMENTS,
} from '../uapi/nf-tables.ts';
import {
  NFNETLINK_V0,
  NFNL_BATCH_ATTRIBUTES,
  NFNL_MSG_BATCH_BEGIN,
  NFNL_MSG_BATCH_END,
  nfgenmsg,
  nfnlType,
} from '../uapi/nfnetlink.ts';
import { FAMILIES } from './names.ts';
import { ElementPacker } from './object/element-encode.ts';
import type { CommitOptions, NftChange, NftElements, NftFamily, NftRef, NftSet, SetRef } from './object/model.ts';
import * as encode from './object/object-encode.ts';

/** Set IDs from here on are given to sets the caller gave none. */
const OWN_SET_IDS = 0x8000_0000;
const NO_FAMILY = 0;
/** Offset of nlmsg_flags in struct nlmsghdr. */
const NLMSG_FLAGS = 6;

/** A transaction as bytes, and what each of its messages is about. */
export interface Batch {
  /** Valid until the encoder's next batch. */
  readonly bytes: Uint8Array;
  /** How many messages, begin and end included, when it has an end. */
  readonly messages: number;
  /** What message `firstSequence + 1 + index` is about; the begin has `firstSequence`, the end the last number. */
  readonly origins: readonly MessageOrigin[];
}

/** Where a message of a batch comes from. */
export interface MessageOrigin {
  /** Index of the change. */
  readonly change: number;
  /** Of elements: the index of the first one in this message. */
  readonly firstElement: number;
  /** Where the message begins in the batch. */
  readonly start: number;
}

/** Writes transactions down. One is enough for all: its memory is used again. */
export class BatchEncoder {
  readonly #writer = new AttributeWriter();
  readonly #packer = new ElementPacker();
  #origins: MessageOrigin[] = [];
  #sequence = 0;

  /**
   * Writes all changes between a batch begin and a batch end.
   *
   * Errors are always answered; an acknowledgement is asked of the last change alone, so that however large the batch, its
   * answers are few. With NLM_F_ECHO on the first change, the kernel tells it back, and after it the new generation; with an
   * expected one, the new one is known.
   *
   * @param firstSequence the number of the begin; the messages after it count on
   * @param options with `checkOnly` there is no end
   * @throws ERR_ENCODE for what does not fit its field
   */
  encode(changes: readonly NftChange[], firstSequence: number, options: CommitOptions = {}): Batch {
    return atOnce(this.encodeInSteps(changes, firstSequence, options));
  }

  /** As `encode`, with a place for a pause after each message. */
  *encodeInSteps(
    changes: readonly NftChange[],
    firstSequence: number,
    { expectGeneration, checkOnly = false }: CommitOptions = {},
  ): Steps<Batch> {
    const { bytes } = this.#writer;
    bytes.clear();
    this.#origins = [];
    this.#sequence = firstSequence;
    const begin = this.#header(NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, NO_FAMILY, NFNL_SUBSYS_NFTABLES);
    NFNL_BATCH_ATTRIBUTES.encode(this.#writer, { NFNL_BATCH_GENID: expectGeneration });
    this.#end(begin);
    for (const [index, change] of changes.entries()) yield* this.#change(change, index);
    const last = this.#origins.at(-1);
    if (last) this.#addFlag(last.start, NLM_F_ACK);
    if (expectGeneration === undefined && this.#origins[0]) this.#addFlag(this.#origins[0].start, NLM_F_ECHO);
    if (!checkOnly) this.#end(this.#header(NFNL_MSG_BATCH_END, NLM_F_REQUEST, NO_FAMILY, NFNL_SUBSYS_NFTABLES));
    const messages = this.#origins.length + (checkOnly ? 1 : 2);
    return { bytes: bytes.written(), messages, origins: this.#origins };
  }

  *#change({ operation, object }: NftChange, index: number): Steps<void> {
    switch (operation) {
      case 'add':
      case 'create': {
        const exclusive = operation === 'create' && object.kind !== 'rule' ? NLM_F_EXCL : 0;
        const flags = NLM_F_CREATE | exclusive | (object.kind === 'rule' ? NLM_F_APPEND : 0);
        yield* this.#put(object, index, flags, 'new');
        break;
      }
      case 'insert':
        yield* this.#put(object, index, NLM_F_CREATE, 'new');
        break;
      case 'replace':
        yield* this.#put(object, index, NLM_F_REPLACE, 'new');
        break;
      case 'flush':
        this.#flush(object, index);
        break;
      case 'delete':
        yield* this.#put(object, index, 0, 'delete');
        break;
      case 'destroy':
        // What the kernel can add without knowing more than the name can be destroyed by kernels that have no word for it.
        if (object.kind === 'table' || object.kind === 'chain') {
          yield* this.#put(object, index, NLM_F_CREATE, 'new', true);
          yield* this.#put(object, index, 0, 'delete');
        } else {
          yield* this.#put(object, index, 0, 'destroy');
        }
    }
  }

  *#put(object: NftRef | NftSet, index: number, flags: number, verb: Verb, reference = verb !== 'new'): Steps<void> {
    if (object.kind === 'elements') {
      yield* this.#elements(object, index, flags, verb);
      return;
    }
    const start = this.#begin(MESSAGES[object.kind][verb], flags, object.family, index);
    const writer = this.#writer;
    if (object.kind === 'table') encode.encodeTable(writer, object, reference);
    else if (object.kind === 'chain') encode.encodeChain(writer, object, reference);
    else if (object.kind === 'rule') encode.encodeRule(writer, object, reference);
    else if (object.kind === 'counter') encode.encodeCounter(writer, object, reference);
    else if (verb !== 'new') encode.encodeSetReference(writer, object);
    else encode.encodeSet(writer, object as NftSet, (object as NftSet).id ?? OWN_SET_IDS + index);
    this.#end(start);
    yield;
  }

  *#elements(object: NftElements, index: number, flags: number, verb: Verb): Steps<void> {
    const { elements } = object;
    for (let first = 0; first < elements.length; ) {
      const start = this.#begin(MESSAGES.elements[verb], flags, object.family, index, first);
      const { bytes, next } = this.#packer.pack(elements, first, verb !== 'new');
      NFTA_SET_ELEM_LIST.encode(this.#writer, {
        NFTA_SET_ELEM_LIST_TABLE: object.table,
        NFTA_SET_ELEM_LIST_SET: object.set,
        NFTA_SET_ELEM_LIST_SET_ID: object.setId,
        NFTA_SET_ELEM_LIST_ELEMENTS: bytes,
      });
      this.#end(start);
      first = next;
      yield;
    }
  }

  #flush(object: Extract<NftChange, { operation: 'flush' }>['object'], index: number): void {
    const rules = object.kind !== 'set';
    const start = this.#begin(rules ? NFT_MSG_DELRULE : NFT_MSG_DELSETELEM, 0, object.family, index);
    if (object.kind === 'table') encode.encodeTableOfRules(this.#writer, object);
    else if (object.kind === 'chain') encode.encodeChainOfRules(this.#writer, object);
    else this.#allElements(object);
    this.#end(start);
  }

  #allElements({ table, name }: SetRef): void {
    NFTA_SET_ELEM_LIST.encode(this.#writer, { NFTA_SET_ELEM_LIST_TABLE: table, NFTA_SET_ELEM_LIST_SET: name });
  }

  #begin(message: number, flags: number, family: NftFamily, change: number, firstElement = 0): number {
    this.#origins.push({ change, firstElement, start: this.#writer.bytes.length });
    const type = nfnlType(NFNL_SUBSYS_NFTABLES, message);
    return this.#header(type, NLM_F_REQUEST | flags, FAMILIES.numbers[family], 0);
  }

  /** Writes a header whose length `#end` sets, and returns where it begins. */
  #header(type: number, flags: number, family: number, resource: number): number {
    const { bytes } = this.#writer;
    const start = bytes.length;
    bytes.u32(0);
    bytes.u16(type);
    bytes.u16(flags);
    bytes.u32(this.#sequence);
    bytes.u32(0);
    this.#sequence = (this.#sequence + 1) >>> 0;
    nfgenmsg.encode(bytes, { nfgen_family: family, version: NFNETLINK_V0, res_id: resource });
    return start;
  }

  #end(start: number): void {
    this.#writer.bytes.setU32(start, this.#writer.bytes.length - start);
  }

  #addFlag(message: number, flag: number): void {
    const { bytes } = this.#writer;
    const at = message + NLMSG_FLAGS;
    bytes.setU16(at, readU16(bytes.written(), at) | flag);
  }
}

type Verb = 'new' | 'delete' | 'destroy';

const MESSAGES: Readonly<Record<NftRef['kind'], Readonly<Record<Verb, number>>>> = {
  table: { new: NFT_MSG_NEWTABLE, delete: NFT_MSG_DELTABLE, destroy: NFT_MSG_DELTABLE },
  chain: { new: NFT_MSG_NEWCHAIN, delete: NFT_MSG_DELCHAIN, destroy: NFT_MSG_DELCHAIN },
  rule: { new: NFT_MSG_NEWRULE, delete: NFT_MSG_DELRULE, destroy: NFT_MSG_DESTROYRULE },
  set: { new: NFT_MSG_NEWSET, delete: NFT_MSG_DELSET, destroy: NFT_MSG_DESTROYSET },
  elements: { new: NFT_MSG_NEWSETELEM, delete: NFT_MSG_DELSETELEM, destroy: NFT_MSG_DESTROYSETELEM },
  counter: { new: NFT_MSG_NEWOBJ, delete: NFT_MSG_DELOBJ, destroy: NFT_MSG_DESTROYOBJ },
};

/** The element of a message that lies at a byte offset of it; undefined when the offset is not in the list. */
export function elementAt(message: Uint8Array, offset: number): number | undefined {
  let at = NLMSG_HDRLEN + nfgenmsg.size;
  const next = (where: number) => where + Math.max(NLA_HDRLEN, (readU16(message, where) + 3) & ~3);
  const inList = () => (readU16(message, at + 2) & NLA_TYPE_MASK) === NFTA_SET_ELEM_LIST_ELEMENTS;
  while (at + NLA_HDRLEN <= message.length && !inList()) at = next(at);
  let element = at + NLA_HDRLEN;
  if (offset < element) return undefined;
  for (let index = 0; element + NLA_HDRLEN <= message.length; index++, element = next(element)) {
    if (offset < next(element)) return index;
  }
  return undefined;
}
