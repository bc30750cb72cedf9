import { atOnce, type Steps } from '../../core/index.ts';

// A set of rules, each for one key (an address, a port, both), laid out as a tree of chains so that a packet meets few
// of them. What chains there are depends on the set alone, never on the order in which it came about: a restart, a
// full resync and a thousand small changes all end in the same chains.
//
// Keys are strings of bits. Prefixes under which keys differ ("branches") form a compressed binary tree. Each branch
// has a class by its number of keys: 0 up to LEAF, then one more for every factor of STEP. The rules of a chain:
//   - of a branch's two children one stands inline: the one of higher class, of two the second. So each bit of the way
//     costs one rule, and the chain ends in keys. Not so at the root, where packets that belong to no key should pass
//     by few rules;
//   - the other child is a chain that a goto leads to if its class is not 0 and lower than that of the branch above it,
//     else it stands inline too, and both its children count as others;
//   - gotos first, then keys: a goto stands for more packets.
// Classes fall from chain to chain, so chains never nest deeper than MAX_CLASS. And what a chain holds depends on the
// classes below it alone, so a change touches the chains on its own way, and those next to it where a class changes.

/** Of up to this many keys no chain is made: it would hardly save rules. */
const LEAF = 3;
/** 2 would save half a rule at 10,000 keys and cost seven at 50,000, where MAX_CLASS is reached; 3 costs half a rule more. */
const STEP = 2.5;
/**
 * Classes above this do not exist; LEAF * STEP^MAX_CLASS = 28,610 keys fill the tree without longer chains. nf_tables
 * refuses more than 15 jumps and gotos in a row (NFT_JUMP_STACK_SIZE), of which a Service's own chains and those before
 * the tree take five.
 */
const MAX_CLASS = 10;

/** A string of bits, eight a byte, the most significant first; all keys of a tree have the same length. */
export type Key = Uint8Array;

/** How a tree writes a prefix: the first `length` bits of `key`, more than none and fewer than all. */
export interface KeySpace {
  /** The match, in iptables-save's form, that holds for exactly the packets with this prefix: `-d 10.96.0.0/20`. */
  match(key: Key, length: number): string;
  /** The name of its chain, unique for the prefix, at most 28 characters. */
  chainName(key: Key, length: number): string;
}

/** What changed: chain name -> its rules, undefined when the chain is no more. */
export interface RadixChanges {
  /** The rules to put where packets enter the tree; undefined when nothing changed at all. */
  readonly root: readonly string[] | undefined;
  readonly chains: ReadonlyMap<string, readonly string[] | undefined>;
}

interface Leaf {
  readonly key: Key;
  rule: string;
}

interface Branch {
  /** Any key below; its first `length` bits are the prefix. */
  readonly key: Key;
  readonly length: number;
  count: number;
  /** By the bit that follows the prefix. */
  readonly children: [Node, Node];
  /** Where the gotos of its chain led when it was written last; undefined: it is no chain. */
  exits: readonly Branch[] | undefined;
  /** Something below changed since its chain was written. */
  changed: boolean;
}

type Node = Leaf | Branch;

/** The tree. `put` and `remove` cost a walk down one path; `takeChanges` writes the chains on it. */
export class RadixTree {
  #top: Node | undefined;
  #changed = false;
  /** Where the root's jumps led when it was written last. */
  #rootExits: readonly Branch[] = [];
  /** Nodes looked at so far: lets tests see what an update costs. */
  visited = 0;

  readonly #space: KeySpace;

  constructor(space: KeySpace) {
    this.#space = space;
  }

  get size(): number {
    return this.#top ? countOf(this.#top) : 0;
  }

  /** Sets the rule of a key. */
  put(key: Key, rule: string): void {
    const path = this.#pathTo(key);
    const node = this.#below(path.at(-1), key);
    const common = node ? commonLength(node.key, key) : 0;
    const found = node && !isBranch(node) && common === key.length * 8;
    this.#change(path, found ? 0 : 1);
    if (found) {
      node.rule = rule;
      return;
    }
    const added: Leaf = { key, rule };
    this.#attach(path.at(-1), key, node ? fork(added, node, common) : added);
  }

  /** Removes a key; nothing happens when it is not there. */
  remove(key: Key): void {
    const path = this.#pathTo(key);
    const node = this.#below(path.at(-1), key);
    if (!node || isBranch(node) || commonLength(node.key, key) < key.length * 8) return;
    this.#change(path, -1);
    // The branch above it forks no longer: its other child takes its place.
    const end = path.at(-1);
    if (end) this.#attach(path.at(-2), key, end.children[bitAt(key, end.length) ? 0 : 1]);
    else this.#top = undefined;
  }

  /** What `put` and `remove` changed since the last call; the first call gives the whole tree. */
  takeChanges(): RadixChanges {
    return atOnce(this.changes());
  }

  /** As `takeChanges`, with a place for a pause after each chain; nothing may be put or removed meanwhile. */
  *changes(): Steps<RadixChanges> {
    const chains = new Map<string, readonly string[] | undefined>();
    if (!this.#changed) return { root: undefined, chains };
    this.#changed = false;
    /** Chains that rules written anew led to before, and those they lead to now. */
    const before = [...this.#rootExits];
    const now = new Set<Branch>();
    const root = this.#top ? this.#write(this.#top, '-j') : { rules: [], exits: [] };
    this.#rootExits = root.exits;
    // Grows on the way: a chain that is written anew may lead to others.
    const reached = [...root.exits];
    for (const chain of reached) {
      now.add(chain);
      if (chain.exits && !chain.changed) continue;
      for (const exit of chain.exits ?? []) before.push(exit);
      const written = this.#write(chain, '-g');
      chains.set(this.#nameOf(chain), written.rules);
      chain.exits = written.exits;
      chain.changed = false;
      for (const exit of written.exits) reached.push(exit);
      yield;
    }
    // Grows on the way: below a chain that is no more there may be others.
    for (const chain of before) {
      if (now.has(chain) || !chain.exits) continue;
      for (const exit of chain.exits) before.push(exit);
      chain.exits = undefined;
      const name = this.#nameOf(chain);
      // Removed and put again, a branch is another object of the same name.
      if (!chains.has(name)) chains.set(name, undefined);
    }
    return { root: root.rules, chains };
  }

  /**
   * The rules of the chain of `top`, and the branches they lead to.
   *
   * @param descend `-j` for the root: what matches no key must come back and meet the rules behind the tree
   */
  #write(top: Node, descend: '-g' | '-j'): { readonly rules: readonly string[]; readonly exits: Branch[] } {
    const exits: Branch[] = [];
    const keys: string[] = [];
    const walk = (node: Node, ownClass: number, continues: boolean) => {
      this.visited++;
      if (!isBranch(node)) {
        keys.push(node.rule);
        return;
      }
      const [first, second] = node.children;
      const next = continues ? (classOf(first) > classOf(second) ? first : second) : undefined;
      for (const child of next === first ? [second, first] : [first, second]) {
        const childClass = classOf(child);
        if (isBranch(child) && child !== next && childClass > 0 && childClass < ownClass) exits.push(child);
        else walk(child, childClass, child === next);
      }
    };
    const isRoot = descend === '-j';
    walk(top, isRoot ? Number.POSITIVE_INFINITY : classOf(top), !isRoot);
    const gotos = exits.map((branch) =>
      // Joined, not added up, as `formatRule` does.
      [this.#space.match(branch.key, branch.length), descend, this.#nameOf(branch)].join(' '),
    );
    return { rules: [...gotos, ...keys], exits };
  }

  #nameOf({ key, length }: Branch): string {
    return this.#space.chainName(key, length);
  }

  /** The branches from the top towards a key, as far as their prefixes are the key's. */
  #pathTo(key: Key): Branch[] {
    const path: Branch[] = [];
    let node = this.#top;
    while (node && isBranch(node) && commonLength(node.key, key) >= node.length) {
      this.visited++;
      path.push(node);
      node = this.#below(node, key);
    }
    return path;
  }

  /** Where `key` leads from a branch, or from above the top. */
  #below(branch: Branch | undefined, key: Key): Node | undefined {
    return branch ? branch.children[bitAt(key, branch.length)] : this.#top;
  }

  #attach(parent: Branch | undefined, key: Key, node: Node): void {
    if (parent) parent.children[bitAt(key, parent.length)] = node;
    else this.#top = node;
  }

  #change(path: readonly Branch[], added: number): void {
    this.#changed = true;
    for (const branch of path) {
      branch.count += added;
      branch.changed = true;
    }
  }
}

/** @param length of what the keys of both have in common */
function fork(leaf: Leaf, node: Node, length: number): Branch {
  const children: [Node, Node] = bitAt(leaf.key, length) ? [node, leaf] : [leaf, node];
  return { key: leaf.key, length, count: countOf(node) + 1, children, exits: undefined, changed: true };
}

function isBranch(node: Node): node is Branch {
  return 'children' in node;
}

function countOf(node: Node): number {
  return isBranch(node) ? node.count : 1;
}

function classOf(node: Node): number {
  const count = countOf(node);
  let result = 0;
  for (let limit = LEAF; count > limit && result < MAX_CLASS; limit *= STEP) result++;
  return result;
}

function bitAt(key: Key, index: number): 0 | 1 {
  return (key[index >> 3]! >> (7 - (index & 7))) & 1 ? 1 : 0;
}

/** In bits. */
function commonLength(a: Key, b: Key): number {
  let byte = 0;
  while (byte < a.length && a[byte] === b[byte]) byte++;
  // What follows the first byte that differs does not count; clz32 counts in 32 bits.
  return byte === a.length ? byte * 8 : byte * 8 + Math.clz32(a[byte]! ^ b[byte]!) - 24;
}
