import { type Drift, driftLines, ifPresent, type Steps, sameTexts } from '../../core/index.ts';
import type {
  NftChain,
  NftChange,
  NftElement,
  NftElements,
  NftFamily,
  NftReader,
  NftRule,
  NftSet,
  NftTable,
  SetRef,
} from '../../netlink/nftables/index.ts';
import { baseText, elementTexts, ruleText } from '../../netlink/nftables/text/index.ts';

/**
 * What the changes of a repair say about the kernel: each thing they make is missing or other than it is to be, each that they
 * remove is not ours to have. What is made anew as it was is no difference.
 *
 * @param reader the kernel, which has not seen the changes
 * @throws KernelError, ERR_NETLINK_DUMP_INTERRUPTED
 */
export function* changesDrift(reader: NftReader, changes: readonly NftChange[]): Steps<Drift[]> {
  const present = new Present(reader);
  const repair = new Repair(present);
  for (const change of changes) {
    yield;
    yield* repair.add(change);
  }
  const { drift, asleep, chains, sets, rebuilt } = repair;
  for (const name of asleep) {
    drift.push({ object: `table ${name}`, difference: 'changed', ours: [], theirs: ['flags dormant;'] });
  }
  for (const chain of chains.values()) {
    yield;
    const found = chainDrift(chain, present, sets, rebuilt.has(`${chain.family} ${chain.table}`));
    if (found) drift.push(found);
  }
  for (const { family, name } of rebuilt.values()) {
    for (const chain of present.chains(family, name)) {
      if (chains.has(`${family} ${name} ${chain.name}`)) continue;
      const theirs = present.rules(family, name, chain.name).map((rule) => present.ruleText(rule));
      drift.push({
        object: `chain ${family} ${name} ${chain.name}`,
        difference: 'unexpected',
        ...driftLines([], theirs),
      });
    }
    // Its sets, then: another version of the program made them.
    if (drift.length === 0) drift.push({ object: `table ${family} ${name}`, difference: 'changed' });
  }
  return drift;
}

/** A chain that a repair writes. */
interface WrittenChain {
  readonly family: NftFamily;
  readonly table: string;
  readonly name: string;
  made?: NftChain;
  flushed: boolean;
  readonly rules: NftRule[];
}

/** The changes of a repair, put together by what they are about. */
class Repair {
  /** Of rules and elements, which each change tells by itself. */
  readonly drift: Drift[] = [];
  /** Tables that are made anew, by family and name, as all things here are. */
  readonly rebuilt = new Map<string, { readonly family: NftFamily; readonly name: string }>();
  /** Tables that somebody has put to sleep, which the changes wake. */
  readonly asleep = new Set<string>();
  readonly chains = new Map<string, WrittenChain>();
  readonly sets = new Map<string, NftSet>();
  readonly #present: Present;

  constructor(present: Present) {
    this.#present = present;
  }

  *add({ operation, object }: NftChange): Steps<void> {
    const isRemoval = operation === 'delete' || operation === 'destroy';
    switch (object.kind) {
      case 'table':
        this.#addTable(object, isRemoval);
        break;
      case 'chain':
        if (operation === 'flush') this.#chainOf(object).flushed = true;
        else if (!isRemoval) this.#chainOf(object).made = object as NftChain;
        break;
      case 'set':
        if (!isRemoval && 'key' in object) this.sets.set(`${object.family} ${object.table} ${object.name}`, object);
        break;
      case 'rule':
        this.#addRule(object as NftRule, isRemoval);
        break;
      case 'elements': {
        const set = this.sets.get(`${object.family} ${object.table} ${object.set}`) ?? this.#present.set(object);
        yield* elementsDrift(object, isRemoval, set, this.#present, this.drift);
        break;
      }
      default:
    }
  }

  #addTable({ family, name }: Pick<NftTable, 'family' | 'name'>, isRemoval: boolean): void {
    const key = `${family} ${name}`;
    if (isRemoval && this.#present.hasTable(family, name)) this.rebuilt.set(key, { family, name });
    if (this.#present.isAsleep(family, name)) this.asleep.add(key);
  }

  #addRule(rule: NftRule, isRemoval: boolean): void {
    const { family, table, chain: name } = rule;
    if (!isRemoval) {
      this.#chainOf({ family, table, name }).rules.push(rule);
      return;
    }
    const theirs = this.#present.rules(family, table, name).filter(({ handle }) => handle === rule.handle);
    this.drift.push({
      object: `rule of chain ${family} ${table} ${name}`,
      difference: 'unexpected',
      ours: [],
      theirs: theirs.map((one) => this.#present.ruleText(one)),
    });
  }

  #chainOf({ family, table, name }: Pick<WrittenChain, 'family' | 'table' | 'name'>): WrittenChain {
    const key = `${family} ${table} ${name}`;
    const chain = this.chains.get(key) ?? { family, table, name, flushed: false, rules: [] };
    this.chains.set(key, chain);
    return chain;
  }
}

function chainDrift(
  { family, table, name, made, flushed, rules }: WrittenChain,
  present: Present,
  sets: ReadonlyMap<string, NftSet>,
  isRebuilt: boolean,
): Drift | undefined {
  const there = present.chains(family, table).find((chain) => chain.name === name);
  const known = (set: string) => sets.get(`${family} ${table} ${set}`) ?? present.set({ family, table, set });
  const base = (chain: NftChain | undefined) => (chain?.base ? [baseText(chain.base, family)] : []);
  const ours = [...base(made), ...rules.map(({ expressions }) => ruleText(expressions, family, known))];
  if (!there) return { object: `chain ${family} ${table} ${name}`, difference: 'missing', ...driftLines(ours, []) };
  // Put among the rules of others.
  if (!flushed && !isRebuilt) {
    if (rules.length === 0) return undefined;
    return { object: `rule of chain ${family} ${table} ${name}`, difference: 'missing', ...driftLines(ours, []) };
  }
  const theirs = [...base(made && there), ...present.rules(family, table, name).map((rule) => present.ruleText(rule))];
  if (sameTexts(ours, theirs)) return undefined;
  return { object: `chain ${family} ${table} ${name}`, difference: 'changed', ...driftLines(ours, theirs) };
}

function* elementsDrift(
  elements: NftElements,
  isRemoval: boolean,
  set: NftSet | undefined,
  present: Present,
  drift: Drift[],
): Steps<void> {
  const { family, table, set: name } = elements;
  const object = `element of set ${family} ${table} ${name}`;
  const there = present.elements({ kind: 'set', family, table, name });
  for (const element of elements.elements) {
    yield;
    const found = there.get(keyOf(element));
    const text = (one: NftElement) => elementTexts([one], set);
    if (isRemoval) drift.push({ object, difference: 'unexpected', ours: [], theirs: text(found ?? element) });
    else if (!found) drift.push({ object, difference: 'missing', ours: text(element), theirs: [] });
  }
}

function keyOf({ key, keyEnd }: NftElement): string {
  return [key, keyEnd].map((part) => Buffer.from(part ?? []).toString('hex')).join(' ');
}

/** What is in the kernel, read once where it is asked for. */
class Present {
  readonly #reader: NftReader;
  readonly #known = new Map<string, unknown>();

  constructor(reader: NftReader) {
    this.#reader = reader;
  }

  hasTable(family: NftFamily, name: string): boolean {
    return this.#tables(family).some((table) => table.name === name);
  }

  isAsleep(family: NftFamily, name: string): boolean {
    return this.#tables(family).some((table) => table.name === name && table.dormant);
  }

  chains(family: NftFamily, name: string): readonly NftChain[] {
    return this.#once(`chains ${family} ${name}`, () => this.#reader.listChains({ kind: 'table', family, name }));
  }

  rules(family: NftFamily, table: string, name: string): readonly NftRule[] {
    const list = () => this.#reader.listRules({ kind: 'chain', family, table, name });
    return this.#once(`rules ${family} ${table} ${name}`, list);
  }

  set({ family, table, set }: Pick<NftElements, 'family' | 'table' | 'set'>): NftSet | undefined {
    const list = () => this.#reader.listSets({ kind: 'table', family, name: table });
    return this.#once(`sets ${family} ${table}`, list).find(({ name }) => name === set);
  }

  elements(set: SetRef): ReadonlyMap<string, NftElement> {
    return this.#once(`elements ${set.family} ${set.table} ${set.name}`, () => {
      const elements = ifPresent(() => this.#reader.listElements(set)) ?? [];
      return new Map(elements.map((element) => [keyOf(element), element]));
    });
  }

  ruleText({ expressions, family, table }: NftRule): string {
    return ruleText(expressions, family, (set) => this.set({ family, table, set }));
  }

  #tables(family: NftFamily): readonly NftTable[] {
    return this.#once(`tables ${family}`, () => this.#reader.listTables(family));
  }

  #once<T>(key: string, read: () => T): T {
    if (!this.#known.has(key)) this.#known.set(key, read());
    return this.#known.get(key) as T;
  }
}
