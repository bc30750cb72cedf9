// A set of rules, each for one key (an address, a port, both), laid out as a tree of chains so that a packet meets few
// of them. What chains there are depends on the set alone, never on the order in which it came about: a restart, a
// full resync and a thousand small changes all end in the same chains.
//
// Keys are strings of 2-bit digits. Prefixes under which keys differ ("branches") form a compressed 4-way tree. Each
// branch has a class: 0 up to LEAF keys, then one more for every factor of four. A branch is a chain when its class is
// not 0 and lower than that of the branch above it. So:
//   - classes fall along every path, hence chains never nest deeper than MAX_CLASS - 1;
//   - whether a prefix is a chain depends on two counts only, so a change touches its own path and, where a count
//     crosses a power of four, the neighbours one step off it; it never cascades.
// The rules of a chain: one goto for each nearest chain below, then the rules of the keys that no lower chain holds.

/** A branch of up to this many keys is written out where it hangs: a chain of its own would not save rules. */
const LEAF = 4;
/**
 * Classes above this do not exist; 4^(MAX_CLASS + 1) keys fill the tree without longer chains. nf_tables refuses more
 * than 15 jumps and gotos in a row (NFT_JUMP_STACK_SIZE), of which a Service's own chains take five.
 */
const MAX_CLASS = 9;

/** One digit (0 to 3) a byte, most significant first; all keys of a tree have the same length. */
export type Digits = Uint8Array;

/** How a tree writes a prefix: the first `length` digits of `digits`, more than none and fewer than all. */
export interface KeySpace {
  /** The match, in iptables-save's form, that holds for exactly the packets with this prefix: `-d 10.96.0.0/20`. */
  match(digits: Digits, length: number): string;
  /** The name of its chain, unique for the prefix, at most 28 characters. */
  chainName(digits: Digits, length: number): string;
}

/** What changed: chain name -> its rules, undefined when the chain is no more. */
export interface RadixChanges {
  /** The rules to put where packets enter the tree; undefined when nothing changed at all. */
  readonly root: readonly string[] | undefined;
  readonly chains: ReadonlyMap<string, readonly string[] | undefined>;
}

interface Leaf {
  readonly digits: Digits;
  rule: string;
}

interface Branch {
  /** Any key below; its first `length` digits are the prefix. */
  digits: Digits;
  readonly length: number;
  count: number;
  readonly children: (Node | undefined)[];
}

type Node = Leaf | Branch;

/** The tree. `put` and `remove` cost a walk down one path; `takeChanges` renders the chains they touched. */
export class RadixTree {
  private top: Node | undefined;
  private changed = false;
  /** Chains that may have changed, by name. */
  private touched = new Map<string, { readonly digits: Digits; readonly length: number }>();
  /** Nodes looked at so far: lets tests see what an update costs. */
  visited = 0;

  private readonly space: KeySpace;

  constructor(space: KeySpace) {
    this.space = space;
  }

  get size(): number {
    return this.top ? countOf(this.top) : 0;
  }

  /** Sets the rule of a key. */
  put(digits: Digits, rule: string): void {
    this.changed = true;
    const path = this.pathTo(digits);
    const end = path.at(-1);
    const node = end ? end.children[digits[end.length]!] : this.top;
    if (node && !isBranch(node) && commonLength(node.digits, digits) === digits.length) {
      node.rule = rule;
      for (const branch of path) this.touch(branch);
      return;
    }
    for (const branch of path) this.setCount(branch, branch.count + 1);
    let added: Node = { digits, rule };
    if (node) {
      const fork: Branch = {
        digits,
        length: commonLength(node.digits, digits),
        count: countOf(node) + 1,
        children: new Array(4).fill(undefined),
      };
      fork.children[digits[fork.length]!] = added;
      fork.children[node.digits[fork.length]!] = node;
      this.touchWithChildren(fork);
      added = fork;
    }
    this.attach(end, digits, added);
  }

  /** Removes a key; nothing happens when it is not there. */
  remove(digits: Digits): void {
    const path = this.pathTo(digits);
    const end = path.at(-1);
    const node = end ? end.children[digits[end.length]!] : this.top;
    if (!node || isBranch(node) || commonLength(node.digits, digits) !== digits.length) return;
    this.changed = true;
    for (const branch of path) this.setCount(branch, branch.count - 1);
    this.attach(end, digits, undefined);
    if (!end) return;
    const [sibling, another] = end.children.filter((child) => child !== undefined);
    if (sibling && !another) {
      // The fork forks no longer: its last child takes its place.
      this.touchWithChildren(end);
      this.attach(path.at(-2), digits, sibling);
    }
  }

  /** What `put` and `remove` changed since the last call; the first call gives the whole tree. */
  takeChanges(): RadixChanges {
    const chains = new Map<string, readonly string[] | undefined>();
    for (const [name, { digits, length }] of this.touched) {
      const branch = this.chainAt(digits, length);
      chains.set(name, branch && this.rulesOf(branch, '-g'));
    }
    this.touched.clear();
    const root = this.changed ? this.rootRules() : undefined;
    this.changed = false;
    return { root, chains };
  }

  /** A jump, not a goto: what matches no key must come back and meet the rules behind the tree. */
  private rootRules(): string[] {
    if (!this.top) return [];
    return isBranch(this.top) ? this.rulesOf(this.top, '-j') : [this.top.rule];
  }

  private rulesOf(chain: Branch, descend: '-g' | '-j'): string[] {
    const chains: string[] = [];
    const leaves: string[] = [];
    const chainClass = classOf(chain.count);
    const walk = (node: Node) => {
      this.visited++;
      if (!isBranch(node)) {
        leaves.push(node.rule);
        return;
      }
      const nodeClass = classOf(node.count);
      if (nodeClass === 0 || nodeClass === chainClass) {
        for (const child of node.children) if (child) walk(child);
      } else {
        const { digits, length } = node;
        chains.push(`${this.space.match(digits, length)} ${descend} ${this.space.chainName(digits, length)}`);
      }
    };
    walk(chain);
    // A chain stands for more keys than a leaf: first, it shortens the way of more packets.
    return [...chains, ...leaves];
  }

  /** The branches from the top towards a key, as far as their prefixes are the key's. */
  private pathTo(digits: Digits): Branch[] {
    const path: Branch[] = [];
    let node = this.top;
    while (node && isBranch(node) && commonLength(node.digits, digits) >= node.length) {
      this.visited++;
      path.push(node);
      node = node.children[digits[node.length]!];
    }
    return path;
  }

  /** The branch with exactly this prefix if it is a chain now. */
  private chainAt(digits: Digits, length: number): Branch | undefined {
    const path = this.pathTo(digits);
    const at = path.findIndex((branch) => branch.length === length);
    const [above, branch] = [path[at - 1], path[at]];
    if (!above || !branch) return undefined;
    const own = classOf(branch.count);
    return own > 0 && own < classOf(above.count) ? branch : undefined;
  }

  private attach(parent: Branch | undefined, digits: Digits, node: Node | undefined): void {
    if (parent) parent.children[digits[parent.length]!] = node;
    else this.top = node;
  }

  private setCount(branch: Branch, count: number): void {
    const before = classOf(branch.count);
    if (before > 0) this.touch(branch);
    branch.count = count;
    if (classOf(count) !== before) this.touchWithChildren(branch);
  }

  /** For a branch whose class changed, or that came or goes: its children are compared with another class now. */
  private touchWithChildren(branch: Branch): void {
    this.touch(branch);
    for (const child of branch.children) if (child && isBranch(child)) this.touch(child);
  }

  private touch(branch: Branch): void {
    this.visited++;
    // At length 0 everything is below: that is the root, which has no name.
    if (branch.length === 0) return;
    const { digits, length } = branch;
    this.touched.set(this.space.chainName(digits, length), { digits, length });
  }
}

function isBranch(node: Node): node is Branch {
  return 'children' in node;
}

function countOf(node: Node): number {
  return isBranch(node) ? node.count : 1;
}

/** 0 up to LEAF keys, 1 up to 4 LEAF, 2 up to 16 LEAF, and so on. */
function classOf(count: number): number {
  let result = 0;
  for (let limit = LEAF; count > limit && result < MAX_CLASS; limit *= 4) result++;
  return result;
}

function commonLength(a: Digits, b: Digits): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}
