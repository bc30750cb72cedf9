import { type Key, type KeySpace, type RadixChanges, RadixTree } from './radix.ts';

/** A key of a tree: its bits, and a text that is unique among the tree's keys. */
export interface TreeKey {
  readonly text: string;
  readonly bits: Key;
}

/**
 * A radix tree whose keys may be wanted by several owners: two Services with the same external address and port, or one
 * endpoint address in many Services. The owner that sorts first has its rule in the tree, the others wait behind it, so
 * that the outcome does not depend on who came first.
 */
export class ClaimedTree {
  private readonly tree: RadixTree;
  private readonly claims = new Map<string, Map<string, string>>();

  constructor(space: KeySpace) {
    this.tree = new RadixTree(space);
  }

  /** Sets the rule `owner` wants for a key; one rule an owner and key. */
  claim(owner: string, key: TreeKey, rule: string): void {
    let claimants = this.claims.get(key.text);
    if (!claimants) {
      claimants = new Map();
      this.claims.set(key.text, claimants);
    }
    const before = winner(claimants);
    claimants.set(owner, rule);
    this.settle(key, before, winner(claimants));
  }

  /** Takes a claim back; nothing happens when there is none. */
  release(owner: string, key: TreeKey): void {
    const claimants = this.claims.get(key.text);
    if (!claimants) return;
    const before = winner(claimants);
    claimants.delete(owner);
    if (claimants.size === 0) this.claims.delete(key.text);
    this.settle(key, before, winner(claimants));
  }

  takeChanges(): RadixChanges {
    return this.tree.takeChanges();
  }

  private settle(key: TreeKey, before: string | undefined, after: string | undefined): void {
    if (after === before) return;
    if (after === undefined) this.tree.remove(key.bits);
    else this.tree.put(key.bits, after);
  }
}

function winner(claimants: ReadonlyMap<string, string>): string | undefined {
  let first: string | undefined;
  for (const owner of claimants.keys()) if (first === undefined || owner < first) first = owner;
  return first === undefined ? undefined : claimants.get(first);
}
