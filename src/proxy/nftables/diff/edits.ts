import type { NftElement } from '../../../netlink/nftables/index.ts';
import type { ChainBody } from '../compile/chain.ts';
import type { SetBody } from '../compile/schema.ts';
import type { ElementList } from './element-list.ts';

/** A chain to be given its rules. */
export interface ChainEdit {
  readonly name: string;
  readonly body: ChainBody;
  /** It is there already, with other rules. */
  readonly exists: boolean;
}

/** What leads from one state of the table to another. Only what is named here changes. */
export interface Edits {
  readonly writeChains: ChainEdit[];
  readonly removeChains: string[];
  readonly addSets: Map<string, SetBody>;
  /** One that is in `addSets` too is made anew. */
  readonly removeSets: Set<string>;
  /** By set. An element that is in `addElements` too gets another value. */
  readonly removeElements: Map<string, NftElement[]>;
  readonly addElements: Map<string, NftElement[]>;
  /** Sets that are empty, with all that goes into them. */
  readonly fill: Map<string, ElementList>;
  /** Affinity maps whose clients may keep endpoints that are gone, with the values that are still right (`keyText`). */
  readonly affinities: Map<string, ReadonlySet<string>>;
}

/** To be filled: as they are, they change nothing. */
export function emptyEdits(): Edits {
  return {
    writeChains: [],
    removeChains: [],
    addSets: new Map(),
    removeSets: new Set(),
    removeElements: new Map(),
    addElements: new Map(),
    fill: new Map(),
    affinities: new Map(),
  };
}

/** Adds an element to those of its set, which need not have any yet. */
export function pushElement(elements: Map<string, NftElement[]>, set: string, element: NftElement): void {
  const list = elements.get(set);
  if (list) list.push(element);
  else elements.set(set, [element]);
}

/** How many elements are written, removals included. */
export function countElements({ removeElements, addElements, fill }: Edits): number {
  let count = 0;
  for (const list of removeElements.values()) count += list.length;
  for (const list of addElements.values()) count += list.length;
  for (const list of fill.values()) count += list.size;
  return count;
}
