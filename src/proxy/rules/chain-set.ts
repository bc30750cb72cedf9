import { type Steps, sameTexts } from '../../core/index.ts';

/** The tables Services are programmed in. */
export const TABLES = ['filter', 'nat'] as const;
/** One of them. */
export type Table = (typeof TABLES)[number];

/** A chain and all its rules, each as iptables-save prints it, without `-A CHAIN`. Immutable. */
export interface Chain {
  readonly rules: readonly string[];
  /** Whom it serves, for messages: `Service port "shop/web:http"`. */
  readonly owner: string;
}

/** The chains of each table, by name. */
export type ChainSet = Readonly<Record<Table, Map<string, Chain>>>;

/** What chains should become; undefined: not be there. Chains it does not name stay as they are. */
export type ChainEdits = Readonly<Record<Table, Map<string, Chain | undefined>>>;

/** What has to be done in one table. */
export interface ChainDiff {
  /** New chains, and chains whose rules differ. */
  readonly write: ReadonlyMap<string, Chain>;
  /** Chains that are there and should not be. */
  readonly remove: readonly string[];
}

/** To be filled: no chain in any table. */
export function emptyChainSet(): ChainSet {
  return { filter: new Map(), nat: new Map() };
}

/** To be filled: as they are, they change nothing. */
export function emptyEdits(): ChainEdits {
  return { filter: new Map(), nat: new Map() };
}

/** What is left to do of `edits` when the kernel holds `current`. */
export function* diffChains(
  current: ReadonlyMap<string, { readonly rules: readonly string[] }>,
  edits: ReadonlyMap<string, Chain | undefined>,
): Steps<ChainDiff> {
  const write = new Map<string, Chain>();
  const remove: string[] = [];
  for (const [name, chain] of edits) {
    yield;
    const present = current.get(name);
    if (!chain) {
      if (present) remove.push(name);
    } else if (!present || !sameTexts(present.rules, chain.rules)) {
      write.set(name, chain);
    }
  }
  return { write, remove };
}

/** What a diff did to the number of rules. */
export interface RuleCounts {
  readonly written: number;
  /** How many more there are now. */
  readonly change: number;
}

/** Records in `committed` that `diff` is in the kernel now. */
export function* applyDiff(committed: Map<string, Chain>, diff: ChainDiff): Steps<RuleCounts> {
  let written = 0;
  let replaced = 0;
  const rulesOf = (name: string) => committed.get(name)?.rules.length ?? 0;
  for (const [name, chain] of diff.write) {
    yield;
    written += chain.rules.length;
    replaced += rulesOf(name);
    committed.set(name, chain);
  }
  for (const name of diff.remove) {
    yield;
    replaced += rulesOf(name);
    committed.delete(name);
  }
  return { written, change: written - replaced };
}

/** Whether there is nothing to do. */
export function isEmptyDiff(diff: ChainDiff): boolean {
  return diff.write.size === 0 && diff.remove.length === 0;
}

/**
 * What the names of chains begin with that a proxy in mode iptables makes for Services: the first five are kube-proxy's, and
 * ours as well; the others are of our trees.
 */
const GENERATED_PREFIXES = [
  'KUBE-SVC-',
  'KUBE-SVL-',
  'KUBE-SEP-',
  'KUBE-FW-',
  'KUBE-EXT-',
  'KUBE-VIP-',
  'KUBE-XIP-',
  'KUBE-XNP-',
  'KUBE-LBF-',
  'KUBE-HC-',
] as const;

/** One of them. */
export type GeneratedPrefix = (typeof GENERATED_PREFIXES)[number];

/**
 * Whether a chain is made for a Service or a part of a tree, by us or by kube-proxy: one that is not wanted is stale.
 * The kubelet's chains (KUBE-FIREWALL, KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT) are neither this nor entry chains.
 */
export function isGeneratedChain(name: string): boolean {
  return GENERATED_PREFIXES.some((prefix) => name.startsWith(prefix));
}
