import type { IpFamily } from '../../../core/index.ts';
import {
  type NftChain,
  type NftChange,
  type NftElement,
  type NftFamily,
  type NftRule,
  nftFamily,
} from '../../../netlink/nftables/index.ts';
import type { ChainBody } from '../compile/chain.ts';
import { placeSet } from '../compile/schema.ts';
import type { Edits } from './edits.ts';

/** Which table a transaction is about. */
export interface TablePlace {
  readonly family: IpFamily;
  readonly table: string;
}

/**
 * Edits as one transaction, in the order the kernel asks for: a set can go once no rule uses it, a chain once nothing
 * leads to it, and what is used must be there.
 */
export function toChanges(place: TablePlace, edits: Edits): NftChange[] {
  const { writeChains, removeChains, addSets, removeSets, removeElements, addElements, fill } = edits;
  const inTable = { family: nftFamily(place.family), table: place.table } as const;
  const chain = (name: string) => ({ kind: 'chain', ...inTable, name }) as const;
  const changes: NftChange[] = [];
  for (const { name, exists } of writeChains) if (exists) changes.push({ operation: 'flush', object: chain(name) });
  for (const name of removeChains) changes.push({ operation: 'flush', object: chain(name) });
  for (const name of removeSets) changes.push({ operation: 'delete', object: { kind: 'set', ...inTable, name } });
  for (const [name, body] of addSets) {
    changes.push({ operation: 'create', object: placeSet(place.family, place.table, name, body) });
  }
  for (const { name, body, exists } of writeChains) {
    if (!exists) changes.push({ operation: 'create', object: placeChain(inTable, name, body) });
  }
  for (const { name, body } of writeChains) {
    for (const object of placeRules(inTable, name, body)) changes.push({ operation: 'add', object });
  }
  const elements = (set: string, list: readonly NftElement[]) =>
    ({ kind: 'elements', ...inTable, set, elements: list }) as const;
  for (const [set, list] of removeElements) changes.push({ operation: 'delete', object: elements(set, list) });
  for (const [set, list] of addElements) changes.push({ operation: 'create', object: elements(set, list) });
  for (const [set, list] of fill) {
    for (const object of list.chunks({ ...inTable, set })) changes.push({ operation: 'create', object });
  }
  for (const name of removeChains) changes.push({ operation: 'delete', object: chain(name) });
  return changes;
}

interface InTable {
  readonly family: NftFamily;
  readonly table: string;
}

function placeChain(inTable: InTable, name: string, { base, comment }: ChainBody): NftChain {
  return { kind: 'chain', ...inTable, name, ...(base && { base }), ...(comment && { comment }) };
}

function placeRules(inTable: InTable, chain: string, { rules }: ChainBody): NftRule[] {
  return rules.map((rule) => ({ kind: 'rule', ...inTable, chain, ...rule }));
}
