// The objects in the payloads of nf_tables messages. Everything throws ERR_NETLINK_DECODE.

import { findAttribute } from '../../attribute.ts';
import { readBe64 } from '../../integer.ts';
import { NLA_TYPE_MASK } from '../../uapi/netlink.ts';
import {
  NF_DROP,
  NFT_DATA_VERDICT,
  NFT_OBJECT_COUNTER,
  NFT_SET_MAP,
  NFT_TABLE_F_DORMANT,
  NFTA_CHAIN,
  NFTA_GEN,
  NFTA_OBJ,
  NFTA_RULE,
  NFTA_SET,
  NFTA_SET_ELEM_LIST,
  NFTA_TABLE,
} from '../../uapi/nf-tables.ts';
import { NFT_EXPRESSIONS } from '../../uapi/nf-tables-expressions.ts';
import { nfgenmsg } from '../../uapi/nfnetlink.ts';
import type { Expression } from '../expression/expression.ts';
import { decodeExpression, decodeExpressions } from '../expression/expression-decode.ts';
import { need, readOptional64 } from '../expression/integers.ts';
import { FAMILIES, HOOKS, SET_FLAGS } from '../names.ts';
import type { DatatypeName } from './datatypes.ts';
import { decodeElements } from './element-decode.ts';
import type { BaseChain, NftChain, NftCounter, NftElements, NftFamily, NftRule, NftSet, NftTable } from './model.ts';
import { typeofFields, UDATA_SET_DATA_TYPEOF, UDATA_SET_KEY_TYPEOF } from './typeof.ts';
import { readComment, UDATA_SET_COMMENT } from './userdata.ts';
import { readRecord } from './userdata-record.ts';

/** The family a message is about; undefined for those without a place in the model (arp, netdev). */
export function decodeFamily(payload: Uint8Array): NftFamily | undefined {
  return FAMILIES.name(nfgenmsg.decode(payload).nfgen_family);
}

/** A table, from NFT_MSG_NEWTABLE or NFT_MSG_DELTABLE. */
export function decodeTable(payload: Uint8Array, family: NftFamily): NftTable {
  const a = NFTA_TABLE.decode(payload, nfgenmsg.size);
  return {
    kind: 'table',
    family,
    name: need(a, 'NFTA_TABLE_NAME'),
    ...known('dormant', ((a.NFTA_TABLE_FLAGS ?? 0) & NFT_TABLE_F_DORMANT) !== 0 || undefined),
    ...known('comment', readComment(a.NFTA_TABLE_USERDATA)),
    ...known('use', a.NFTA_TABLE_USE),
    ...known('handle', readOptional64(a.NFTA_TABLE_HANDLE, 'NFTA_TABLE_HANDLE')),
  };
}

/** Whether a chain is hooked in: a quick look, for those of whom nothing else is wanted. */
export function isBaseChain(payload: Uint8Array): boolean {
  const [hook] = NFTA_CHAIN.declarations.NFTA_CHAIN_HOOK;
  return findAttribute(payload, nfgenmsg.size, payload.length, hook & NLA_TYPE_MASK, 'NFTA_CHAIN') >= 0;
}

/** Undefined for a base chain of a family, type or hook the model does not have (`ingress`). */
export function decodeChain(payload: Uint8Array, family: NftFamily): NftChain | undefined {
  const a = NFTA_CHAIN.decode(payload, nfgenmsg.size);
  let base: BaseChain | undefined;
  if (a.NFTA_CHAIN_HOOK) {
    const hook = HOOKS.name(need(a.NFTA_CHAIN_HOOK, 'NFTA_HOOK_HOOKNUM'));
    const type = a.NFTA_CHAIN_TYPE;
    if (family === 'netdev' || family === 'arp' || !hook) return undefined;
    if (type !== 'filter' && type !== 'nat' && type !== 'route') return undefined;
    base = {
      type,
      hook,
      priority: need(a.NFTA_CHAIN_HOOK, 'NFTA_HOOK_PRIORITY') | 0,
      policy: a.NFTA_CHAIN_POLICY === NF_DROP ? 'drop' : 'accept',
    };
  }
  return {
    kind: 'chain',
    family,
    table: need(a, 'NFTA_CHAIN_TABLE'),
    // The chain of a single rule (`jump { ... }`) has none when the kernel tells that it is deleted.
    name: a.NFTA_CHAIN_NAME ?? '',
    ...known('base', base),
    ...known('comment', readComment(a.NFTA_CHAIN_USERDATA)),
    ...known('use', a.NFTA_CHAIN_USE),
    ...known('handle', readOptional64(a.NFTA_CHAIN_HANDLE, 'NFTA_CHAIN_HANDLE')),
  };
}

/** A rule, from NFT_MSG_NEWRULE or NFT_MSG_DELRULE; expressions the model does not have are of kind `unknown`. */
export function decodeRule(payload: Uint8Array, family: NftFamily): NftRule {
  const a = NFTA_RULE.decode(payload, nfgenmsg.size);
  return {
    kind: 'rule',
    family,
    table: need(a, 'NFTA_RULE_TABLE'),
    chain: need(a, 'NFTA_RULE_CHAIN'),
    expressions: a.NFTA_RULE_EXPRESSIONS ? decodeExpressions(a.NFTA_RULE_EXPRESSIONS) : [],
    ...known('comment', readComment(a.NFTA_RULE_USERDATA)),
    ...known('handle', readOptional64(a.NFTA_RULE_HANDLE, 'NFTA_RULE_HANDLE')),
  };
}

/** A set or map without its elements, from NFT_MSG_NEWSET or NFT_MSG_DELSET. */
export function decodeSet(payload: Uint8Array, family: NftFamily): NftSet {
  const a = NFTA_SET.decode(payload, nfgenmsg.size);
  const bits = a.NFTA_SET_FLAGS ?? 0;
  const flags = SET_FLAGS.names(bits);
  const data = (bits & NFT_SET_MAP) === 0 ? undefined : (a.NFTA_SET_DATA_TYPE ?? 0);
  const typeofRecord = (type: number) => readRecord(a.NFTA_SET_USERDATA, type);
  const key = typeofFields(a.NFTA_SET_KEY_TYPE ?? 0, typeofRecord(UDATA_SET_KEY_TYPEOF));
  const values =
    data === undefined || data === NFT_DATA_VERDICT
      ? undefined
      : typeofFields(data, typeofRecord(UDATA_SET_DATA_TYPEOF));
  return {
    kind: 'set',
    family,
    table: need(a, 'NFTA_SET_TABLE'),
    name: need(a, 'NFTA_SET_NAME'),
    key,
    ...known('keyLength', isOpen(key) ? a.NFTA_SET_KEY_LEN : undefined),
    ...known('data', data === NFT_DATA_VERDICT ? ('verdict' as const) : values),
    ...known('dataLength', values && isOpen(values) ? a.NFTA_SET_DATA_LEN : undefined),
    ...known('flags', flags.length > 0 ? flags : undefined),
    ...known('expressions', a.NFTA_SET_EXPR ? [decodeExpression(a.NFTA_SET_EXPR)] : listed(a.NFTA_SET_EXPRESSIONS)),
    ...known('size', a.NFTA_SET_DESC?.NFTA_SET_DESC_SIZE),
    ...known('timeoutMs', readOptional64(a.NFTA_SET_TIMEOUT, 'NFTA_SET_TIMEOUT')),
    ...known('gcIntervalMs', a.NFTA_SET_GC_INTERVAL),
    ...known('comment', readComment(a.NFTA_SET_USERDATA, UDATA_SET_COMMENT)),
    ...known('handle', readOptional64(a.NFTA_SET_HANDLE, 'NFTA_SET_HANDLE')),
  };
}

function listed(expressions: Uint8Array | undefined): readonly Expression[] | undefined {
  return expressions && decodeExpressions(expressions);
}

/** Programs other than `nft` need not say what a key is made of, and `nft` has types that the model does not have. */
function isOpen(fields: readonly DatatypeName[]): boolean {
  return fields.length === 0 || fields.includes('unknown');
}

/** The elements in one message; a large set comes in several. */
export function decodeElementList(payload: Uint8Array, family: NftFamily): NftElements {
  const a = NFTA_SET_ELEM_LIST.decode(payload, nfgenmsg.size);
  const elements: NftElements = {
    kind: 'elements',
    family,
    table: need(a, 'NFTA_SET_ELEM_LIST_TABLE'),
    set: need(a, 'NFTA_SET_ELEM_LIST_SET'),
    elements: [],
  };
  if (a.NFTA_SET_ELEM_LIST_ELEMENTS) {
    decodeElements(a.NFTA_SET_ELEM_LIST_ELEMENTS, elements.elements as NftElements['elements'][number][]);
  }
  return elements;
}

/** Undefined for stateful objects other than counters. */
export function decodeCounter(payload: Uint8Array, family: NftFamily): NftCounter | undefined {
  const a = NFTA_OBJ.decode(payload, nfgenmsg.size);
  if (a.NFTA_OBJ_TYPE !== NFT_OBJECT_COUNTER) return undefined;
  const data = a.NFTA_OBJ_DATA && NFT_EXPRESSIONS.counter.decode(a.NFTA_OBJ_DATA);
  return {
    kind: 'counter',
    family,
    table: need(a, 'NFTA_OBJ_TABLE'),
    name: need(a, 'NFTA_OBJ_NAME'),
    ...(data && {
      packets: readBe64(need(data, 'NFTA_COUNTER_PACKETS'), 'NFTA_COUNTER_PACKETS'),
      bytes: readBe64(need(data, 'NFTA_COUNTER_BYTES'), 'NFTA_COUNTER_BYTES'),
    }),
    ...known('comment', readComment(a.NFTA_OBJ_USERDATA)),
    ...known('handle', readOptional64(a.NFTA_OBJ_HANDLE, 'NFTA_OBJ_HANDLE')),
  };
}

/** What NFT_MSG_NEWGEN says: the generation, and who made it. */
export function decodeGeneration(payload: Uint8Array): {
  readonly generation: number;
  readonly processId: number;
  readonly processName: string;
} {
  const a = NFTA_GEN.decode(payload, nfgenmsg.size);
  return {
    generation: need(a, 'NFTA_GEN_ID'),
    processId: a.NFTA_GEN_PROC_PID ?? 0,
    processName: a.NFTA_GEN_PROC_NAME ?? '',
  };
}

/** A field that is left out when there is nothing to say. */
function known<N extends string, V>(name: N, value: V | undefined): { readonly [K in N]?: V } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [K in N]?: V };
}
