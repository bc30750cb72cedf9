import { atOnce, type Steps } from '../../core/index.ts';
import type { NodePlan, ServicePortPlan } from '../index.ts';
import { type Chain, type ChainEdits, ClaimedTree, emptyEdits, type Table } from '../rules/index.ts';
import { type CompiledPort, compilePort, type TreeName } from './compile.ts';
import { type EntryChain, entryChains, type FixedChainOptions } from './fixed-chains.ts';
import { addressSpace, portSpace } from './key-spaces.ts';
import { TREE_PREFIX } from './names.ts';

/**
 * All chains of a family as they should be, kept up to date one Service port at a time: what a change costs depends on
 * the change, not on how many Services there are. Nothing here touches the kernel.
 */
export class Layout {
  readonly #node: NodePlan;
  readonly #entries: readonly EntryChain[];
  readonly #trees: Readonly<Record<TreeName, ClaimedTree>>;
  readonly #roots = new Map<TreeName, readonly string[]>();
  readonly #ports = new Map<string, CompiledPort>();
  #edits = emptyEdits();
  #entriesWritten = false;

  constructor(options: FixedChainOptions) {
    const { family, node } = options;
    this.#node = node;
    this.#entries = entryChains(options);
    const addresses = (name: TreeName) => new ClaimedTree(addressSpace(family, TREE_PREFIX[name]));
    const ports = (name: TreeName) => new ClaimedTree(portSpace(TREE_PREFIX[name]));
    this.#trees = {
      serviceVips: addresses('serviceVips'),
      nodePorts: ports('nodePorts'),
      refusedVips: addresses('refusedVips'),
      refusedExternalVips: addresses('refusedExternalVips'),
      refusedNodePorts: ports('refusedNodePorts'),
      restrictedVips: addresses('restrictedVips'),
      healthChecks: ports('healthChecks'),
    };
  }

  /** What each Service port was compiled to, by its key. */
  get compiled(): ReadonlyMap<string, CompiledPort> {
    return this.#ports;
  }

  /** With places for a pause: a port may have thousands of endpoints and addresses. */
  *upsert(port: ServicePortPlan): Steps<void> {
    const before = this.#ports.get(port.key);
    const after = yield* compilePort(port, this.#node);
    yield* this.#replace(port.key, before, after);
    this.#ports.set(port.key, after);
  }

  /** @param key of the port; nothing happens when it is not there */
  remove(key: string): void {
    const before = this.#ports.get(key);
    if (!before) return;
    atOnce(this.#replace(key, before, undefined));
    this.#ports.delete(key);
  }

  /** The chains that may have changed since the last call; the first call names all there are. */
  *takeEdits(): Steps<ChainEdits> {
    const edits = this.#edits;
    for (const entry of this.#entries) {
      let rootChanged = !this.#entriesWritten;
      for (const name of entry.trees) {
        const { root, chains } = yield* this.#trees[name].changes();
        const owner = `the tree below ${entry.name}`;
        for (const [chain, rules] of chains) edits[entry.table].set(chain, rules && { rules, owner });
        if (!root) continue;
        this.#roots.set(name, root);
        rootChanged = true;
      }
      if (rootChanged) edits[entry.table].set(entry.name, this.#entryChain(entry));
    }
    this.#entriesWritten = true;
    this.#edits = emptyEdits();
    return edits;
  }

  #entryChain(entry: EntryChain): Chain {
    const dispatch = entry.trees.flatMap((name) => this.#roots.get(name) ?? []);
    return { rules: [...dispatch, ...entry.after], owner: `the entry chain ${entry.name}` };
  }

  *#replace(key: string, before: CompiledPort | undefined, after: CompiledPort | undefined): Steps<void> {
    const table: Table = 'nat';
    for (const name of before?.chains.keys() ?? []) this.#edits[table].set(name, undefined);
    for (const [name, chain] of after?.chains ?? []) this.#edits[table].set(name, chain);
    // Claims first, releases after: a key that stays never leaves its tree.
    const kept = new Set<string>();
    for (const claim of after?.claims ?? []) {
      yield;
      this.#trees[claim.tree].claim(key, claim.key, claim.rule);
      kept.add(`${claim.tree} ${claim.key.text}`);
    }
    for (const claim of before?.claims ?? []) {
      yield;
      if (!kept.has(`${claim.tree} ${claim.key.text}`)) this.#trees[claim.tree].release(key, claim.key);
    }
  }
}
