import type { NftChange, NftElement, NftObject } from '../../../src/netlink/nftables/index.ts';

export const T = { family: 'ip', table: 't' } as const;
export const TABLE = { kind: 'table', family: 'ip', name: 't' } as const;
export const add = (object: NftObject): NftChange => ({ operation: 'add', object });
export const addElements = (set: string, ...elements: readonly NftElement[]): NftChange =>
  add({ kind: 'elements', ...T, set, elements });
export const set = (name: string) => ({ kind: 'set', ...T, name }) as const;
export const bytes = (...values: number[]) => Uint8Array.from(values);
