// What is asked when the ruleset is read. All requests can be dumps, except those that say otherwise.

import { type AttributeDeclarations, type AttributeSet, type AttributeValues, encodeBody } from '../attribute-set.ts';
import type { NetlinkRequest } from '../message.ts';
import {
  NFNL_SUBSYS_NFTABLES,
  NFT_MSG_GETCHAIN,
  NFT_MSG_GETFLOWTABLE,
  NFT_MSG_GETGEN,
  NFT_MSG_GETOBJ,
  NFT_MSG_GETRULE,
  NFT_MSG_GETSET,
  NFT_MSG_GETSETELEM,
  NFT_MSG_GETTABLE,
  NFT_OBJECT_COUNTER,
  NFTA_CHAIN,
  NFTA_GEN,
  NFTA_OBJ,
  NFTA_RULE,
  NFTA_SET,
  NFTA_SET_ELEM_LIST,
  NFTA_TABLE,
} from '../uapi/nf-tables.ts';
import { NFNETLINK_V0, nfgenmsg, nfnlType } from '../uapi/nfnetlink.ts';
import { describeObject } from './describe.ts';
import { FAMILIES } from './names.ts';
import { ElementPacker } from './object/element-encode.ts';
import type { ChainRef, NftFamily, SetRef, TableRef } from './object/model.ts';

/** Messages by the names that errors call them by. */
const MESSAGES = {
  NFT_MSG_GETTABLE,
  NFT_MSG_GETCHAIN,
  NFT_MSG_GETRULE,
  NFT_MSG_GETSET,
  NFT_MSG_GETSETELEM,
  NFT_MSG_GETGEN,
  NFT_MSG_GETOBJ,
  NFT_MSG_GETFLOWTABLE,
} as const;

/** Not a dump: the answer is NFT_MSG_NEWGEN. */
export function generationRequest(): NetlinkRequest {
  return request('NFT_MSG_GETGEN', undefined, 'the generation', NFTA_GEN, {});
}

/** The tables of a family; undefined: of all families, as everywhere here. */
export function tableListing(family: NftFamily | undefined): NetlinkRequest {
  return request('NFT_MSG_GETTABLE', family, 'tables', NFTA_TABLE, {});
}

/** The kernel lists the chains of all tables of a family. */
export function chainListing(of: TableRef | NftFamily | undefined): NetlinkRequest {
  const family = typeof of === 'object' ? of.family : of;
  return request('NFT_MSG_GETCHAIN', family, 'chains', NFTA_CHAIN, {});
}

/** What their attributes say is not read. */
export function flowTableListing(): NetlinkRequest {
  return request('NFT_MSG_GETFLOWTABLE', undefined, 'flow tables', NFTA_TABLE, {});
}

/** Not a dump: the answer is the chain. */
export function chainRequest(chain: ChainRef): NetlinkRequest {
  return request('NFT_MSG_GETCHAIN', chain.family, describeObject(chain), NFTA_CHAIN, {
    NFTA_CHAIN_TABLE: chain.table,
    NFTA_CHAIN_NAME: chain.name,
  });
}

/** The rules of one chain, or of all chains of a table. */
export function ruleListing(of: TableRef | ChainRef): NetlinkRequest {
  const [table, chain] = of.kind === 'table' ? [of.name, undefined] : [of.table, of.name];
  return request('NFT_MSG_GETRULE', of.family, `rules of ${describeObject(of)}`, NFTA_RULE, {
    NFTA_RULE_TABLE: table,
    NFTA_RULE_CHAIN: chain,
  });
}

/** The sets and maps of a table, or of a family; without their elements. */
export function setListing(of: TableRef | NftFamily | undefined): NetlinkRequest {
  const family = typeof of === 'object' ? of.family : of;
  const table = typeof of === 'object' ? of.name : undefined;
  return request('NFT_MSG_GETSET', family, 'sets', NFTA_SET, { NFTA_SET_TABLE: table });
}

/** All elements of a set or map. */
export function elementListing(set: SetRef): NetlinkRequest {
  return request('NFT_MSG_GETSETELEM', set.family, `elements of ${describeObject(set)}`, NFTA_SET_ELEM_LIST, {
    NFTA_SET_ELEM_LIST_TABLE: set.table,
    NFTA_SET_ELEM_LIST_SET: set.name,
  });
}

/** Not a dump: the answer is the element. */
export function elementRequest(set: SetRef, key: Uint8Array | 'catch-all'): NetlinkRequest {
  const isCatchAll = key === 'catch-all';
  const object = `element ${isCatchAll ? '*' : Buffer.from(key).toString('hex')} of ${describeObject(set)}`;
  const element = isCatchAll ? { key: new Uint8Array(), catchAll: true } : { key };
  return request('NFT_MSG_GETSETELEM', set.family, object, NFTA_SET_ELEM_LIST, {
    NFTA_SET_ELEM_LIST_TABLE: set.table,
    NFTA_SET_ELEM_LIST_SET: set.name,
    NFTA_SET_ELEM_LIST_ELEMENTS: new ElementPacker().pack([element], 0, true).bytes,
  });
}

/** The named counters of a table, with what they counted. */
export function counterListing(of: TableRef): NetlinkRequest {
  return request('NFT_MSG_GETOBJ', of.family, `counters of ${describeObject(of)}`, NFTA_OBJ, {
    NFTA_OBJ_TABLE: of.name,
    NFTA_OBJ_TYPE: NFT_OBJECT_COUNTER,
  });
}

function request<D extends AttributeDeclarations>(
  operation: keyof typeof MESSAGES,
  family: NftFamily | undefined,
  object: string,
  set: AttributeSet<D>,
  values: AttributeValues<D>,
): NetlinkRequest {
  const header = { nfgen_family: family === undefined ? 0 : FAMILIES.numbers[family], version: NFNETLINK_V0 };
  return {
    type: nfnlType(NFNL_SUBSYS_NFTABLES, MESSAGES[operation]),
    flags: 0,
    operation,
    object,
    payload: encodeBody(nfgenmsg, header, set, values),
  };
}
