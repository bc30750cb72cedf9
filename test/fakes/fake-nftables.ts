import { KernelError } from '../../src/core/index.ts';
import {
  type ChainRef,
  type CommitOptions,
  type CommitReport,
  type NftChain,
  type NftChange,
  NftCommitError,
  type NftCounter,
  type NftElement,
  type NftEvent,
  type NftFamily,
  type NftRefusal,
  type NftRule,
  type NftRuleset,
  type NftSet,
  type NftTable,
  type SetRef,
  type TableRef,
} from '../../src/netlink/nftables/index.ts';
import { KnownSets } from '../../src/netlink/nftables/text/index.ts';
import { applyChange, checkLoops, Refused } from './fake-nftables-apply.ts';
import { allRules, copyState, type RulesetState, type TableState, tableKey } from './fake-nftables-state.ts';
import { changesText, tableText } from './nftables-text.ts';

const ENOENT = 2;
const ERESTART = 85;

/** Says with a positive errno that a change is to be refused. */
export type Refuse = (change: NftChange) => number | undefined;

/**
 * nf_tables in memory: refuses what the kernel refuses (`test/lab/netlink/nftables-fake.test.ts` holds it to that), and keeps
 * what it was asked. What rules do to packets is not its business.
 *
 * @example
 * const nft = new FakeNftables();
 * nft.refuse = ({ object }) => (object.kind === 'elements' ? EINVAL : undefined);
 */
export class FakeNftables implements NftRuleset {
  /** Every transaction that was tried and not empty, the refused ones too. */
  readonly commits: (readonly NftChange[])[] = [];
  /** Refuses changes the kernel would take. */
  refuse: Refuse = () => undefined;
  /** How often anything was listed. */
  listings = 0;
  closed = false;
  readonly #listeners = new Set<(event: NftEvent) => void>();
  #state: RulesetState = new Map();
  #generation = 1;

  /** All tables, as `nft list ruleset` prints them (`tableText`): what assertions on rules compare. */
  toString(): string {
    return [...this.#state.values()]
      .map((state) =>
        tableText({
          table: state.table,
          counters: [...state.counters.values()],
          sets: [...state.sets.values()],
          elements: new Map([...state.elements].map(([name, elements]) => [name, [...elements.values()]])),
          chains: [...state.chains.values()],
          rules: state.rules,
        }),
      )
      .join('');
  }

  /** The transactions that were tried, from one on, as scripts for `nft`. */
  commitsText(from = 0): string[] {
    const known = new KnownSets();
    for (const { sets } of this.#state.values()) for (const set of sets.values()) known.note(set);
    return this.commits.slice(from).map((changes) => changesText(changes, known));
  }

  /** How many changes were committed or tried so far; many elements of one set are one change. */
  get changeCount(): number {
    return this.commits.reduce((sum, changes) => sum + changes.length, 0);
  }

  commit(changes: readonly NftChange[], options: CommitOptions = {}): CommitReport {
    if (changes.length > 0) this.commits.push(changes);
    return this.#commit(changes, options, true);
  }

  async commitAsync(changes: readonly NftChange[], options: CommitOptions = {}): Promise<CommitReport> {
    await Promise.resolve();
    return this.commit(changes, options);
  }

  async byProgram(_transactions: number, run: () => Promise<void>): Promise<void> {
    await run();
  }

  /** Commits as another process does: it is not counted, not refused on purpose, and the monitor tells it is foreign. */
  commitAsOther(...changes: readonly NftChange[]): void {
    const refuse = this.refuse;
    this.refuse = () => undefined;
    try {
      this.#commit(changes, {}, false);
    } finally {
      this.refuse = refuse;
    }
  }

  /** `nft flush ruleset` by another process. */
  flushRuleset(): void {
    const tables = [...this.#state.values()].map(({ table }) => table);
    this.commitAsOther(...tables.map((object): NftChange => ({ operation: 'delete', object })));
  }

  /** What `watchNftables` does: events come after the commit has returned. */
  watch(listener: (event: NftEvent) => void): { close(): void } {
    this.#listeners.add(listener);
    return { close: () => void this.#listeners.delete(listener) };
  }

  /** Has the monitors lose events. */
  overrun(): void {
    this.#tell([{ kind: 'overrun' }]);
  }

  generation(): number {
    return this.#generation;
  }

  listTables(family?: NftFamily): NftTable[] {
    return this.#tables(family).map(({ table }) => table);
  }

  listChains(of?: TableRef | NftFamily): NftChain[] {
    return this.#tables(of).flatMap(({ chains }) => [...chains.values()]);
  }

  listBaseChains(): NftChain[] {
    return this.listChains().filter(({ base }) => base !== undefined);
  }

  getChain({ family, table, name }: ChainRef): NftChain | undefined {
    return this.#state.get(tableKey(family, table))?.chains.get(name);
  }

  listRules(of: TableRef | ChainRef): NftRule[] {
    if (of.kind === 'table') return this.#tables(of).flatMap(allRules);
    this.listings++;
    return [...(this.#state.get(tableKey(of.family, of.table))?.rules.get(of.name) ?? [])];
  }

  listSets(of?: TableRef | NftFamily): NftSet[] {
    return this.#tables(of).flatMap(({ sets }) => [...sets.values()].map(({ id: _, ...set }) => set));
  }

  listElements(set: SetRef): NftElement[] {
    this.listings++;
    const elements = this.#state.get(tableKey(set.family, set.table))?.elements.get(set.name);
    if (!elements) {
      throw new KernelError('ERR_NETLINK_ACK', { operation: 'NFT_MSG_GETSETELEM', object: set.name, errno: ENOENT });
    }
    return [...elements.values()];
  }

  async listChainsAsync(of: TableRef): Promise<NftChain[]> {
    await Promise.resolve();
    return this.listChains(of);
  }

  async listRulesAsync(of: TableRef): Promise<NftRule[]> {
    await Promise.resolve();
    return this.listRules(of);
  }

  async listSetsAsync(of: TableRef): Promise<NftSet[]> {
    await Promise.resolve();
    return this.listSets(of);
  }

  async listElementsAsync(set: SetRef): Promise<NftElement[]> {
    await Promise.resolve();
    return this.listElements(set);
  }

  /** In interval sets too, only by the key it was given with. */
  getElement(set: SetRef, key: Uint8Array | 'catch-all'): NftElement | undefined {
    const elements = this.#state.get(tableKey(set.family, set.table))?.elements.get(set.name);
    return [...(elements?.values() ?? [])].find((element) =>
      key === 'catch-all' ? element.catchAll === true : !element.catchAll && Buffer.compare(element.key, key) === 0,
    );
  }

  listCounters(of: TableRef): NftCounter[] {
    return this.#tables(of).flatMap(({ counters }) => [...counters.values()]);
  }

  close(): void {
    this.closed = true;
  }

  #tables(of: TableRef | NftFamily | undefined): TableState[] {
    this.listings++;
    return [...this.#state.values()].filter(({ table }) =>
      typeof of === 'object' ? table.family === of.family && table.name === of.name : !of || table.family === of,
    );
  }

  #commit(changes: readonly NftChange[], { expectGeneration, checkOnly }: CommitOptions, own: boolean): CommitReport {
    const report = { messages: 0, bytes: 0, kernelSeconds: 0 };
    if (changes.length === 0) return { ...report, generation: undefined };
    if (expectGeneration !== undefined && expectGeneration !== this.#generation) {
      throw new NftCommitError(changes, [refusal(ERESTART)]);
    }
    const state = copyState(this.#state);
    const refusals: NftRefusal[] = [];
    for (const [index, change] of changes.entries()) {
      try {
        const errno = this.refuse(change);
        if (errno !== undefined) throw new Refused(errno);
        applyChange(state, change);
        for (const table of state.values()) checkLoops(table);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        // As the kernel does: it goes on, and later refusals may follow from this one.
        refusals.push(refusal(error.errno, index, error.elementIndex));
      }
    }
    if (refusals.length > 0) throw new NftCommitError(changes, refusals);
    if (checkOnly) return { ...report, generation: undefined, messages: changes.length + 1 };
    const before = this.#state;
    this.#state = state;
    this.#generation++;
    this.#tell([
      ...changes.flatMap(({ operation, object }): NftEvent[] =>
        operation === 'flush'
          ? flushed(before, object)
          : [{ kind: operation === 'delete' || operation === 'destroy' ? 'deleted' : 'new', object } as NftEvent],
      ),
      { kind: 'generation', generation: this.#generation, processId: own ? process.pid : 1, processName: 'fake', own },
    ]);
    return { ...report, generation: this.#generation, messages: changes.length + 2 };
  }

  #tell(events: readonly NftEvent[]): void {
    for (const listener of this.#listeners) {
      queueMicrotask(() => {
        for (const event of events) if (this.#listeners.has(listener)) listener(event);
      });
    }
  }
}

/** The kernel tells what was in it. */
function flushed(state: RulesetState, object: Extract<NftChange, { operation: 'flush' }>['object']): NftEvent[] {
  const { family, name } = object;
  const within = state.get(tableKey(family, object.kind === 'table' ? name : object.table));
  if (!within) return [];
  if (object.kind === 'set') {
    const elements = [...(within.elements.get(name)?.values() ?? [])];
    return [{ kind: 'deleted', object: { kind: 'elements', family, table: object.table, set: name, elements } }];
  }
  const rules = object.kind === 'chain' ? (within.rules.get(name) ?? []) : [...within.rules.values()].flat();
  return rules.map((rule) => ({ kind: 'deleted', object: rule }));
}

function refusal(errno: number, changeIndex?: number, elementIndex?: number): NftRefusal {
  return { errno, extAck: undefined, changeIndex, elementIndex };
}
