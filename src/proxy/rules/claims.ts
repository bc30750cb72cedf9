import { insertSorted, removeSorted, type Steps } from '../../core/index.ts';
import { byOwner, type PortClaim } from '../index.ts';
import { type Key, type KeySpace, type RadixChanges, RadixTree } from './radix.ts';

/** A key of a tree: its bits, and a text that is unique among the tree's keys. */
export interface TreeKey {
  readonly text: string;
  readonly bits: Key;
}

/** A radix tree whose keys several Service ports may claim: the first of them (`byOwner`) has its rule in the tree. */
export class ClaimedTree {
  readonly #tree: RadixTree;
  /** By the text of the key; who has it comes first. */
  readonly #claims = new Map<string, Claimant[]>();

  constructor(space: KeySpace) {
    this.#tree = new RadixTree(space);
  }

  /** Sets the rule `owner` wants for a key; one rule an owner and key. */
  claim(owner: string, key: TreeKey, rule: string): void {
    let claimants = this.#claims.get(key.text);
    if (!claimants) {
      claimants = [];
      this.#claims.set(key.text, claimants);
    }
    const before = claimants[0]?.rule;
    insertSorted(claimants, { owner, rule }, byOwner);
    this.#settle(key, before, claimants[0]?.rule);
  }

  /** Takes a claim back; nothing happens when there is none. */
  release(owner: string, key: TreeKey): void {
    const claimants = this.#claims.get(key.text);
    if (!claimants) return;
    const before = claimants[0]?.rule;
    removeSorted(claimants, { owner, rule: '' }, byOwner);
    if (claimants.length === 0) this.#claims.delete(key.text);
    this.#settle(key, before, claimants[0]?.rule);
  }

  /** See `RadixTree.changes`. */
  changes(): Steps<RadixChanges> {
    return this.#tree.changes();
  }

  #settle(key: TreeKey, before: string | undefined, after: string | undefined): void {
    if (after === before) return;
    if (after === undefined) this.#tree.remove(key.bits);
    else this.#tree.put(key.bits, after);
  }
}

interface Claimant extends PortClaim {
  readonly rule: string;
}
