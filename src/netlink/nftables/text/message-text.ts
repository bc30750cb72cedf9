import type { NetlinkMessage } from '../../message.ts';
import { NLM_F_APPEND, NLM_F_EXCL, NLM_F_REPLACE } from '../../uapi/netlink.ts';
import * as uapi from '../../uapi/nf-tables.ts';
import { NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, nfgenmsg } from '../../uapi/nfnetlink.ts';
import type { NftChange, NftFamily, NftObject, NftRef } from '../object/model.ts';
import * as decode from '../object/object-decode.ts';
import { changeText, KnownSets, objectText } from './change-text.ts';

const NAMES = new Map<number, string>(
  Object.entries(uapi).flatMap(([name, value]) =>
    name.startsWith('NFT_MSG_') && typeof value === 'number' ? [[value, name] as const] : [],
  ),
);

/** What a message of nf_tables says. */
export interface NftMessageText {
  /** The kernel's name of its type: `NFT_MSG_NEWRULE`. */
  readonly name: string;
  /** The change it asks for, or the object it tells of, as `nft` text. */
  readonly lines: readonly string[];
}

/** Reads messages of nf_tables. It remembers the sets that went by, whose types tell what the bytes of their elements are. */
export class NftMessageReader {
  readonly #known = new KnownSets();

  /**
   * Undefined for messages of other subsystems.
   *
   * @param isRequest sent by this program: a change; others are answers, which tell of objects
   * @throws ERR_NETLINK_DECODE
   */
  read(isRequest: boolean, message: NetlinkMessage): NftMessageText | undefined {
    if (message.type === NFNL_MSG_BATCH_BEGIN) return { name: 'NFNL_MSG_BATCH_BEGIN', lines: [] };
    if (message.type === NFNL_MSG_BATCH_END) return { name: 'NFNL_MSG_BATCH_END', lines: [] };
    if (message.type >> 8 !== uapi.NFNL_SUBSYS_NFTABLES) return undefined;
    const number = message.type & 0xff;
    const name = NAMES.get(number) ?? `NFT_MSG ${number}`;
    const text = isRequest ? this.#changeText(name, message) : this.#objectText(name, message.payload);
    return { name, lines: text === undefined ? [] : [text] };
  }

  #objectText(name: string, payload: Uint8Array): string | undefined {
    if (name === 'NFT_MSG_NEWGEN') return `generation ${decode.decodeGeneration(payload).generation}`;
    const object = decodeObject(name, payload);
    if (object?.kind === 'set') this.#known.note(object);
    return object && objectText(object, this.#known);
  }

  #changeText(name: string, { flags, payload }: NetlinkMessage): string | undefined {
    if (name.startsWith('NFT_MSG_GET')) return undefined;
    const isRemoval = !name.startsWith('NFT_MSG_NEW');
    const change = isRemoval ? removal(name, payload) : addition(decodeObject(name, payload), flags);
    return change && changeText(change, this.#known);
  }
}

function addition(object: NftObject | undefined, flags: number): NftChange | undefined {
  if (object?.kind !== 'rule') return object && { operation: (flags & NLM_F_EXCL) !== 0 ? 'create' : 'add', object };
  if ((flags & NLM_F_REPLACE) !== 0) return { operation: 'replace', object };
  return { operation: (flags & NLM_F_APPEND) !== 0 ? 'add' : 'insert', object };
}

/** What is not named does not restrict: the deletion of a rule without a number is that of all rules of its chain. */
function removal(name: string, payload: Uint8Array): NftChange | undefined {
  const family = decode.decodeFamily(payload);
  const operation = name.startsWith('NFT_MSG_DESTROY') ? 'destroy' : 'delete';
  if (!family) return undefined;
  if (name.endsWith('RULE')) {
    const rule = uapi.NFTA_RULE.decode(payload, nfgenmsg.size);
    const [table, chain] = [rule.NFTA_RULE_TABLE ?? '', rule.NFTA_RULE_CHAIN];
    if (chain === undefined) return { operation: 'flush', object: { kind: 'table', family, name: table } };
    if (!rule.NFTA_RULE_HANDLE) return { operation: 'flush', object: { kind: 'chain', family, table, name: chain } };
    const handle = Buffer.from(rule.NFTA_RULE_HANDLE).readBigUInt64BE();
    return { operation, object: { kind: 'rule', family, table, chain, handle: Number(handle) } };
  }
  if (name.endsWith('SETELEM')) {
    const object = decode.decodeElementList(payload, family);
    const { table, set } = object;
    if (object.elements.length === 0) return { operation: 'flush', object: { kind: 'set', family, table, name: set } };
    return { operation, object };
  }
  const object = namedReference(name, payload, family);
  return object && { operation, object };
}

function namedReference(name: string, payload: Uint8Array, family: NftFamily): NftRef | undefined {
  if (name.endsWith('TABLE')) return decode.decodeTable(payload, family);
  if (name.endsWith('CHAIN')) return decode.decodeChain(payload, family);
  if (name.endsWith('SET')) return decode.decodeSet(payload, family);
  return name.endsWith('OBJ') ? decode.decodeCounter(payload, family) : undefined;
}

function decodeObject(name: string, payload: Uint8Array): NftObject | undefined {
  const family = decode.decodeFamily(payload);
  switch (family && name) {
    case 'NFT_MSG_NEWTABLE':
      return decode.decodeTable(payload, family!);
    case 'NFT_MSG_NEWCHAIN':
      return decode.decodeChain(payload, family!);
    case 'NFT_MSG_NEWRULE':
      return decode.decodeRule(payload, family!);
    case 'NFT_MSG_NEWSET':
      return decode.decodeSet(payload, family!);
    case 'NFT_MSG_NEWSETELEM':
      return decode.decodeElementList(payload, family!);
    case 'NFT_MSG_NEWOBJ':
      return decode.decodeCounter(payload, family!);
    default:
      return undefined;
  }
}
