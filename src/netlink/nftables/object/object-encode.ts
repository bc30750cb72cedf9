// The attributes of objects, in the order `nft` writes them. Where `reference` is true, only those by which the kernel finds an
// object that is there, to delete it. Everything throws ERR_ENCODE for what does not fit its field.

import { AttributeWriter } from '../../attribute.ts';
import { encodeNest } from '../../attribute-set.ts';
import { NLA_F_NESTED } from '../../uapi/netlink.ts';
import {
  NF_ACCEPT,
  NF_DROP,
  NFT_DATA_VERDICT,
  NFT_OBJECT_COUNTER,
  NFT_SET_CONCAT,
  NFT_SET_MAP,
  NFT_TABLE_F_OWNER,
  NFTA_CHAIN,
  NFTA_LIST_ELEM,
  NFTA_OBJ,
  NFTA_RULE,
  NFTA_RULE_EXPRESSIONS,
  NFTA_SET,
  NFTA_SET_FIELD,
  NFTA_TABLE,
} from '../../uapi/nf-tables.ts';
import { NFT_EXPRESSIONS } from '../../uapi/nf-tables-expressions.ts';
import { encodeExpressions } from '../expression/expression-encode.ts';
import { be64 } from '../expression/integers.ts';
import { HOOKS, SET_FLAGS } from '../names.ts';
import { type DatatypeName, datatype, typeLength, typeNumber } from './datatypes.ts';
import type {
  ChainRef,
  CounterRef,
  NftChain,
  NftCounter,
  NftRule,
  NftSet,
  NftTable,
  RuleRef,
  SetRef,
  TableRef,
} from './model.ts';
import { commentUserdata, setUserdata } from './userdata.ts';

/** For NFT_MSG_NEWTABLE and NFT_MSG_DELTABLE. */
export function encodeTable(writer: AttributeWriter, table: NftTable | TableRef, reference: boolean): void {
  NFTA_TABLE.encode(writer, {
    NFTA_TABLE_NAME: table.name,
    NFTA_TABLE_FLAGS: reference ? undefined : (table as NftTable).owned ? NFT_TABLE_F_OWNER : 0,
    NFTA_TABLE_USERDATA: reference ? undefined : commentUserdata((table as NftTable).comment),
  });
}

/** For NFT_MSG_NEWCHAIN and NFT_MSG_DELCHAIN. */
export function encodeChain(writer: AttributeWriter, chain: NftChain | ChainRef, reference: boolean): void {
  const { base, comment } = reference ? ({} as NftChain) : (chain as NftChain);
  NFTA_CHAIN.encode(writer, {
    NFTA_CHAIN_TABLE: chain.table,
    NFTA_CHAIN_NAME: chain.name,
    NFTA_CHAIN_TYPE: base?.type,
    NFTA_CHAIN_POLICY: base?.policy && (base.policy === 'drop' ? NF_DROP : NF_ACCEPT),
    NFTA_CHAIN_HOOK: base && {
      NFTA_HOOK_HOOKNUM: HOOKS.numbers[base.hook],
      NFTA_HOOK_PRIORITY: base.priority >>> 0,
    },
    NFTA_CHAIN_USERDATA: commentUserdata(comment),
  });
}

/** For NFT_MSG_DELRULE: all rules of a chain. */
export function encodeChainOfRules(writer: AttributeWriter, chain: ChainRef): void {
  NFTA_RULE.encode(writer, { NFTA_RULE_TABLE: chain.table, NFTA_RULE_CHAIN: chain.name });
}

/** For NFT_MSG_DELRULE: all rules of a table. */
export function encodeTableOfRules(writer: AttributeWriter, table: TableRef): void {
  NFTA_RULE.encode(writer, { NFTA_RULE_TABLE: table.name });
}

/** For NFT_MSG_NEWRULE and NFT_MSG_DELRULE, which goes by the handle. */
export function encodeRule(writer: AttributeWriter, rule: NftRule | RuleRef, reference: boolean): void {
  NFTA_RULE.encode(writer, {
    NFTA_RULE_TABLE: rule.table,
    NFTA_RULE_CHAIN: rule.chain,
    NFTA_RULE_HANDLE: rule.handle === undefined ? undefined : be64(rule.handle, 'NFTA_RULE_HANDLE'),
  });
  if (reference) return;
  const { position, expressions, comment } = rule as NftRule;
  if (position !== undefined) NFTA_RULE.encode(writer, { NFTA_RULE_POSITION: be64(position, 'NFTA_RULE_POSITION') });
  encodeExpressions(writer, NFTA_RULE_EXPRESSIONS, expressions);
  NFTA_RULE.encode(writer, { NFTA_RULE_USERDATA: commentUserdata(comment) });
}

/** For NFT_MSG_NEWSET. `id` is the number by which this transaction may name the set. */
export function encodeSet(writer: AttributeWriter, set: NftSet, id: number): void {
  const { key, data } = set;
  // Only the fields of ranges matter to the kernel: to it, other concatenations are one long key.
  const concatenatedRanges = key.length > 1 && (set.flags?.includes('interval') ?? false);
  NFTA_SET.encode(writer, {
    NFTA_SET_TABLE: set.table,
    NFTA_SET_NAME: set.name,
    NFTA_SET_FLAGS:
      SET_FLAGS.bits(set.flags) | (data === undefined ? 0 : NFT_SET_MAP) | (concatenatedRanges ? NFT_SET_CONCAT : 0),
    NFTA_SET_KEY_TYPE: typeNumber(key),
    NFTA_SET_KEY_LEN: typeLength(key),
    NFTA_SET_DATA_TYPE: data === undefined ? undefined : data === 'verdict' ? NFT_DATA_VERDICT : typeNumber(data),
    NFTA_SET_DATA_LEN: data === undefined ? undefined : data === 'verdict' ? 0 : typeLength(data),
    NFTA_SET_ID: id,
    NFTA_SET_DESC:
      set.size === undefined && !concatenatedRanges
        ? undefined
        : {
            NFTA_SET_DESC_SIZE: set.size,
            NFTA_SET_DESC_CONCAT: concatenatedRanges ? concatenation(key) : undefined,
          },
    NFTA_SET_TIMEOUT: set.timeoutMs === undefined ? undefined : be64(set.timeoutMs, 'NFTA_SET_TIMEOUT'),
    NFTA_SET_GC_INTERVAL: set.gcIntervalMs,
    NFTA_SET_USERDATA: setUserdata(key, data, set.comment),
  });
}

/** For NFT_MSG_DELSET. */
export function encodeSetReference(writer: AttributeWriter, set: SetRef): void {
  NFTA_SET.encode(writer, { NFTA_SET_TABLE: set.table, NFTA_SET_NAME: set.name });
}

/** For NFT_MSG_NEWOBJ and NFT_MSG_DELOBJ, of NFT_OBJECT_COUNTER. */
export function encodeCounter(writer: AttributeWriter, counter: NftCounter | CounterRef, reference: boolean): void {
  const { bytes, packets, comment } = reference ? ({} as NftCounter) : (counter as NftCounter);
  NFTA_OBJ.encode(writer, {
    NFTA_OBJ_TABLE: counter.table,
    NFTA_OBJ_NAME: counter.name,
    NFTA_OBJ_TYPE: NFT_OBJECT_COUNTER,
    NFTA_OBJ_DATA: reference
      ? undefined
      : encodeNest(NFT_EXPRESSIONS.counter, {
          NFTA_COUNTER_BYTES: bytes === undefined ? undefined : be64(bytes, 'NFTA_COUNTER_BYTES'),
          NFTA_COUNTER_PACKETS: packets === undefined ? undefined : be64(packets, 'NFTA_COUNTER_PACKETS'),
        }),
    NFTA_OBJ_USERDATA: commentUserdata(comment),
  });
}

/** The content of NFTA_SET_DESC_CONCAT. */
function concatenation(fields: readonly DatatypeName[]): Uint8Array {
  const writer = new AttributeWriter();
  for (const field of fields) {
    const start = writer.nest(NFTA_LIST_ELEM | NLA_F_NESTED);
    NFTA_SET_FIELD.encode(writer, { NFTA_SET_FIELD_LEN: datatype(field).length });
    writer.end(start, 'NFTA_LIST_ELEM');
  }
  return writer.bytes.written();
}
