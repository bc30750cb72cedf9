import type { IpFamily } from '../../core/index.ts';

/** What a node has to remember between two decisions. It is lost when the agent ends, and nothing breaks by that. */
export interface Memory {
  /** The last look at this node's Node: when it was sent, and the UID found (undefined: no Node). */
  readonly looked: { readonly at: number; readonly uid: string | undefined } | undefined;
  /** The last look that found a Node. It was there at this time, or later. */
  readonly proof: { readonly at: number; readonly uid: string } | undefined;
  /** By UID of a block: when the last renewal was sent that was done. */
  readonly renewed: ReadonlyMap<string, number>;
  /** UIDs of own blocks that were seen with our session as the holder. */
  readonly held: ReadonlySet<string>;
  /** The names, by UID, of blocks whose release was sent: ours are not used again, whatever became of it. */
  readonly released: ReadonlyMap<string, string>;
  /** By UID of an own block that gets no more pods: since when. */
  readonly draining: ReadonlyMap<string, number>;
  /** Ranges whose claim was refused, and until when they are left alone. */
  readonly refused: ReadonlyMap<string, number>;
  /** The block that was claimed and is not in the view yet, and until when it is waited for. */
  readonly awaited: ReadonlyMap<IpFamily, { readonly name: string; readonly until: number }>;
  /** Blocks that others left behind, as it seems, by name. */
  readonly suspects: ReadonlyMap<string, Suspect>;
  /** When these are to be looked at next. */
  readonly suspectsAt: number;
  /** Requests that are not to be sent at once, by `requestKey`. */
  readonly attempts: ReadonlyMap<string, Attempt>;
}

/** A block that its node left behind, as it seems. */
export interface Suspect {
  /** The version that was seen: another one, and all begins anew. */
  readonly version: string;
  /** When to act first: other nodes have other times. */
  readonly actAt: number;
  /** Since when its node is known to be gone; undefined: it is not. */
  readonly goneSince: number | undefined;
}

export interface Attempt {
  readonly version: string;
  readonly failures: number;
  readonly notBefore: number;
}

export const NO_MEMORY: Memory = {
  looked: undefined,
  proof: undefined,
  renewed: new Map(),
  held: new Set(),
  released: new Map(),
  draining: new Map(),
  refused: new Map(),
  awaited: new Map(),
  suspects: new Map(),
  suspectsAt: Number.NEGATIVE_INFINITY,
  attempts: new Map(),
};

/** A copy with one entry more, or another one. */
export function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
  return new Map(map).set(key, value);
}

/** The same map if nothing is left out. */
export function keepEntries<K, V>(map: ReadonlyMap<K, V>, keep: (key: K, value: V) => boolean): ReadonlyMap<K, V> {
  let kept: Map<K, V> | undefined;
  for (const [key, value] of map) {
    if (keep(key, value)) continue;
    kept ??= new Map(map);
    kept.delete(key);
  }
  return kept ?? map;
}
