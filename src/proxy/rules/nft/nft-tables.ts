import { type Drift, type IpFamily, systemClock } from '../../../core/index.ts';
import { Nftables, type NftRuleset, nftFamily, type TableRef, watchNftables } from '../../../netlink/nftables/index.ts';
import { ForeignWatch, type WatchNftables } from '../../../nft/index.ts';
import type { IptablesVariant } from '../iptables-tool.ts';
import {
  type BaseJump,
  lacksJump,
  type MisplacedChain,
  misplacedChains,
  misplacedDrift,
  putInPlace,
} from './base-chains.ts';

export interface NftTablesOptions {
  readonly family: IpFamily;
  /** Our jumps, one at least in each of the tables with rules of ours. */
  readonly jumps: readonly BaseJump[];
  /** Called once, when the kernel is first asked. */
  readonly open: () => NftRuleset;
  /** Opens the kernel's stream of changes. */
  readonly watch: WatchNftables;
  /** Called soon after others took one of our jumps away. @default nobody is told */
  readonly jumpsGone?: () => void;
}

/** A firewall's reload is several transactions. */
const DEBOUNCE_MS = 50;
/** While anybody listens the kernel takes some 20 us more for each rule. Of more than so many nobody is to be told. */
const FEW_RULES = 1000;

/**
 * Tables of iptables-nft as the kernel has them, with what its programs do not tell: whether they sleep, whether their chains are
 * at their hooks, and whether anybody has written to them since they were read. To have the programs list 100,000 rules takes seconds.
 *
 * All of it throws ERR_NETLINK_SOCKET, or the KernelError of what the kernel refuses.
 */
export class NftTables {
  readonly #options: NftTablesOptions;
  readonly #watch: ForeignWatch;
  readonly #tables: readonly TableRef[];
  #ruleset: NftRuleset | undefined;
  /** The ruleset's generation in which the tables were last known to be right. */
  #rightGeneration: number | undefined;

  constructor(options: NftTablesOptions) {
    const { family, jumps, watch } = options;
    this.#options = options;
    const names = new Set(jumps.map(({ table }) => table));
    this.#tables = [...names].map((name) => ({ kind: 'table', family: nftFamily(family), name }));
    this.#watch = new ForeignWatch({
      watch,
      tables: this.#tables,
      clock: systemClock,
      debounceMs: DEBOUNCE_MS,
      generation: () => this.#nft.generation(),
      // To read them again at each change by others would cost more than it brings: all but a flush waits for the next look.
      changed: () => this.#lookForJumps(),
    });
  }

  /** Nobody has written to the tables since they were right. */
  isRight(): boolean {
    const right = this.#rightGeneration;
    if (right === undefined) return false;
    const now = this.#nft.generation();
    if ((this.#watch.untouchedUntil(right) ?? right) !== now) return false;
    this.#rightGeneration = now;
    return true;
  }

  /** Listens from now on. @returns the generation that is read now, for `foundRight` */
  startReading(): number {
    const generation = this.generation();
    this.#watch.start(generation);
    return generation;
  }

  /** The ruleset's generation, for `listen`. */
  generation(): number {
    return this.#nft.generation();
  }

  /** Listens from now on, unless it does already. What was done since a generation is taken for somebody else's. */
  listen(since: number): void {
    if (!this.#watch.isListening) this.#watch.start(since);
  }

  /** What was read since `startReading` is right. */
  foundRight(generation: number): void {
    this.#rightGeneration = generation;
  }

  /**
   * Runs a program that makes so many transactions. If there were no others meanwhile, tables that were right are right again;
   * otherwise jumps of ours may be gone again.
   *
   * @param rules how many it writes in all
   * @param write rejects when the program fails: nothing is known then
   */
  async writing(transactions: number, rules: number, write: () => Promise<void>): Promise<void> {
    const right = this.isRight() ? this.#rightGeneration : undefined;
    const before = right ?? this.#nft.generation();
    this.#rightGeneration = undefined;
    // The kernel need not tell each rule of a large restore.
    this.#watch.close();
    await (rules > FEW_RULES ? this.#nft.byProgram(transactions, write) : write());
    const after = this.#nft.generation();
    const wasAlone = after === before + transactions;
    if (right !== undefined && wasAlone) this.#rightGeneration = after;
    this.#watch.start(after);
    // Also if somebody else wrote before, whom nobody listened to any more.
    if (!wasAlone || right === undefined) this.#lookAfterWriting();
  }

  /** Tables that somebody has put to sleep (`flags dormant`): no packet meets their rules. */
  sleepDrift(): Drift[] {
    return this.#asleep().map(({ name }) => {
      return { object: `table ${name}`, difference: 'changed', ours: [], theirs: ['flags dormant;'] };
    });
  }

  /** Wakes those that sleep. */
  wake(): void {
    const asleep = this.#asleep();
    // Naming a table wakes it.
    if (asleep.length > 0) this.#nft.commit(asleep.map((object) => ({ operation: 'add', object })));
  }

  /**
   * Chains with jumps of ours that are at another hook, or at none: packets meet their rules at another time, or not at all, and
   * iptables-nft knows them for others.
   */
  misplacedDrift(): Drift[] {
    return this.#misplaced().map(misplacedDrift);
  }

  /** Puts those back at their hooks. @throws ERR_IPTABLES when rules of others would be lost */
  putInPlace(): void {
    for (const chain of this.#misplaced()) {
      this.#rightGeneration = undefined;
      putInPlace(this.#nft, chain, this.#options.jumps);
    }
  }

  /** What cannot be read now is no failure of what was written. */
  #lookAfterWriting(): void {
    try {
      this.#lookForJumps();
    } catch {
      this.#options.jumpsGone?.();
    }
  }

  #lookForJumps(): void {
    const { family, jumps, jumpsGone } = this.#options;
    if (jumpsGone && lacksJump(this.#nft, nftFamily(family), jumps)) jumpsGone();
  }

  #misplaced(): readonly MisplacedChain[] {
    const { family, jumps } = this.#options;
    return misplacedChains(this.#nft, nftFamily(family), jumps);
  }

  /** Stops listening and gives the sockets back. */
  close(): void {
    this.#watch.close();
    this.#ruleset?.close();
    this.#ruleset = undefined;
  }

  #asleep(): readonly TableRef[] {
    const found = this.#nft.listTables(nftFamily(this.#options.family));
    return this.#tables.filter((table) => found.some(({ name, dormant }) => name === table.name && dormant));
  }

  get #nft(): NftRuleset {
    this.#ruleset ??= this.#options.open();
    return this.#ruleset;
  }
}

/**
 * The kernel's tables of these names, in the network namespace of the calling thread.
 *
 * @param jumpsGone called soon after others took one of the jumps away
 * @returns undefined for variant legacy, whose tables cannot sleep, and whose changes nobody is told
 */
export function kernelTables(
  variant: IptablesVariant,
  family: IpFamily,
  jumps: readonly BaseJump[],
  jumpsGone: () => void,
): NftTables | undefined {
  if (variant === 'legacy') return undefined;
  const watch: WatchNftables = (listener) => watchNftables(listener, { withoutOwn: true });
  return new NftTables({ family, jumps, open: () => Nftables.open(), watch, jumpsGone });
}

/**
 * How tables differ from what they are to be: what the kernel tells, and what programs of iptables tell of the rules.
 *
 * @param tables @default what the programs tell is all
 * @param readRules called unless one of the chains is misplaced: a table with such a chain iptables-nft reads wrongly, or not at all
 */
export async function tableDrift(
  tables: NftTables | undefined,
  readRules: () => Promise<readonly Drift[]>,
): Promise<Drift[]> {
  const asleep = tables?.sleepDrift() ?? [];
  const misplaced = tables?.misplacedDrift() ?? [];
  if (misplaced.length > 0) return [...asleep, ...misplaced];
  const found = await readRules();
  // A chain that was made anew meanwhile lacks its jumps, and that alone would be told.
  const since = found.length > 0 ? (tables?.misplacedDrift() ?? []) : [];
  return [...asleep, ...since, ...found];
}
