import { constants } from 'node:os';
import {
  type ChainRef,
  type CounterRef,
  type NftChain,
  type NftChange,
  type NftCounter,
  type NftElement,
  type NftElements,
  type NftObject,
  type NftRef,
  type NftRule,
  type NftSet,
  type NftTable,
  type RuleRef,
  type SetRef,
  typeLength,
} from '../../src/netlink/nftables/index.ts';
import {
  allRules,
  chainOf,
  elementKey,
  emptyTable,
  isReferred,
  type RulesetState,
  references,
  sameValue,
  type TableState,
  tableKey,
} from './fake-nftables-state.ts';

const { ENOENT, EEXIST, EBUSY, EINVAL, ENFILE, EOPNOTSUPP, ELOOP } = constants.errno as typeof constants.errno & {
  ENFILE: number;
};

/** A change the kernel would refuse, with its positive errno. */
export class Refused extends Error {
  readonly errno: number;
  readonly elementIndex: number | undefined;

  constructor(errno: number, elementIndex?: number) {
    super(`errno ${errno}`);
    this.errno = errno;
    this.elementIndex = elementIndex;
  }
}

/** Does to `state` what the kernel would; throws Refused, after which the state is not to be used any more. */
export function applyChange(state: RulesetState, { operation, object }: NftChange): void {
  if (operation === 'add' || operation === 'create') add(state, object, operation === 'create');
  else if (operation === 'insert') addRule(tableOf(state, object), object, 'before');
  else if (operation === 'replace') replaceRule(tableOf(state, object), object);
  else if (operation === 'flush') flush(state, object);
  else if (operation === 'delete') remove(state, object, false);
  else destroy(state, object);
}

function add(state: RulesetState, object: NftObject, exclusive: boolean): void {
  if (object.kind === 'table') addTable(state, object, exclusive);
  else if (object.kind === 'chain') addChain(tableOf(state, object), object, exclusive);
  else if (object.kind === 'set') addSet(tableOf(state, object), object, exclusive);
  else if (object.kind === 'counter') addCounter(tableOf(state, object), object, exclusive);
  else if (object.kind === 'elements') addElements(tableOf(state, object), object, exclusive);
  else addRule(tableOf(state, object), object, 'after');
}

/** The table of what is destroyed must be there. */
function destroy(state: RulesetState, object: NftRef): void {
  if (object.kind !== 'table') tableOf(state, object);
  try {
    remove(state, object, true);
  } catch (error) {
    if (!(error instanceof Refused && error.errno === ENOENT)) throw error;
  }
}

/** Chains of jumps that come back to where they began are refused, whatever adds them. */
export function checkLoops(table: TableState): void {
  const jumps = (chain: string): string[] =>
    (table.rules.get(chain) ?? []).flatMap(({ expressions }) =>
      expressions.flatMap((expression) => {
        const { chain: target, set } = references(expression);
        if (target !== undefined) return [target];
        if (set === undefined || expression.kind !== 'lookup' || expression.to !== 'verdict') return [];
        return [...(table.elements.get(set)?.values() ?? [])].flatMap(({ verdict }) => chainOf(verdict) ?? []);
      }),
    );
  const visit = (chain: string, path: ReadonlySet<string>): void => {
    if (path.has(chain)) throw new Refused(ELOOP);
    for (const target of jumps(chain)) visit(target, new Set([...path, chain]));
  };
  for (const [name, chain] of table.chains) if (chain.base) visit(name, new Set());
}

function tableOf(state: RulesetState, object: Exclude<NftRef, { kind: 'table' }>): TableState {
  const table = state.get(tableKey(object.family, object.table));
  if (!table) throw new Refused(ENOENT);
  return table;
}

function addTable(state: RulesetState, table: NftTable, exclusive: boolean): void {
  const key = tableKey(table.family, table.name);
  if (!state.has(key)) state.set(key, emptyTable(table));
  else if (exclusive) throw new Refused(EEXIST);
}

function addChain(table: TableState, chain: NftChain, exclusive: boolean): void {
  const existing = table.chains.get(chain.name);
  if (!existing) {
    const base = chain.base && { ...chain.base, policy: chain.base.policy ?? ('accept' as const) };
    table.chains.set(chain.name, { ...chain, ...(base && { base }), handle: table.nextHandle++ });
    table.rules.set(chain.name, []);
    return;
  }
  if (exclusive) throw new Refused(EEXIST);
  if (!chain.base) return;
  const { type, hook, priority, policy } = chain.base;
  const old = existing.base;
  if (!old || old.type !== type || old.hook !== hook || old.priority !== priority) throw new Refused(EEXIST);
  table.chains.set(chain.name, { ...existing, base: { ...old, policy: policy ?? old.policy } });
}

function addSet(table: TableState, set: NftSet, exclusive: boolean): void {
  const anonymous = set.flags?.includes('anonymous') ?? false;
  const name = anonymous ? freeName(table, set.name) : set.name;
  const existing = table.sets.get(name);
  if (existing) {
    if (exclusive || shape(existing) !== shape(set)) throw new Refused(EEXIST);
    return;
  }
  if (set.timeoutMs !== undefined && !set.flags?.includes('timeout')) throw new Refused(EINVAL);
  table.sets.set(name, { ...set, name, handle: table.nextHandle++ });
  table.elements.set(name, new Map());
}

/** `%d` in the name of an anonymous set is the lowest number that makes it unique. */
function freeName(table: TableState, name: string): string {
  for (let number = 0; ; number++) {
    const candidate = name.replace('%d', String(number));
    if (!table.sets.has(candidate)) return candidate;
  }
}

/** What must agree for a set to be the same. */
function shape({ key, data, flags = [], size }: NftSet): string {
  const dataLength = data === undefined ? 'none' : data === 'verdict' ? data : typeLength(data);
  return `${typeLength(key)} ${key.length} ${dataLength} ${[...flags].sort()} ${size ?? ''}`;
}

function addCounter(table: TableState, counter: NftCounter, exclusive: boolean): void {
  if (!table.counters.has(counter.name)) {
    table.counters.set(counter.name, { packets: 0n, bytes: 0n, ...counter, handle: table.nextHandle++ });
  } else if (exclusive) throw new Refused(EEXIST);
}

function addRule(table: TableState, rule: NftRule, where: 'before' | 'after'): void {
  const rules = table.rules.get(rule.chain);
  if (!rules) throw new Refused(ENOENT);
  const { position, ...rest } = rule;
  const added = { ...rest, expressions: checked(table, rule), handle: table.nextHandle++ };
  if (position === undefined) {
    table.rules.set(rule.chain, where === 'after' ? [...rules, added] : [added, ...rules]);
    return;
  }
  const index = indexOf(rules, position) + (where === 'after' ? 1 : 0);
  table.rules.set(rule.chain, [...rules.slice(0, index), added, ...rules.slice(index)]);
}

function replaceRule(table: TableState, rule: NftRule): void {
  const rules = table.rules.get(rule.chain);
  if (!rules) throw new Refused(ENOENT);
  const index = indexOf(rules, rule.handle);
  const added = { ...rule, expressions: checked(table, rule), handle: table.nextHandle++ };
  table.rules.set(rule.chain, rules.with(index, added));
  dropAnonymous(table, [rules[index]!]);
}

function indexOf(rules: readonly NftRule[], handle: number | undefined): number {
  const index = rules.findIndex((rule) => rule.handle === handle);
  if (index < 0) throw new Refused(ENOENT);
  return index;
}

/** The expressions with the names of anonymous sets filled in; throws Refused for one that refers to nothing. */
function checked(table: TableState, { expressions, chain }: NftRule): NftRule['expressions'] {
  return expressions.map((expression) => {
    if (
      (expression.kind === 'nat' || expression.kind === 'masquerade') &&
      table.chains.get(chain)?.base?.type === 'filter'
    ) {
      throw new Refused(EOPNOTSUPP);
    }
    if (expression.kind === 'lookup' && expression.setId !== undefined) {
      const set = [...table.sets.values()].find(({ id }) => id === expression.setId);
      if (!set) throw new Refused(ENOENT);
      return { ...expression, set: set.name };
    }
    const { chain: target, set, counter } = references(expression);
    if (target !== undefined) checkTarget(table, target);
    if (counter !== undefined && !table.counters.has(counter)) throw new Refused(ENOENT);
    if (set !== undefined && !table.sets.has(set)) throw new Refused(ENOENT);
    if (expression.kind === 'lookup' && expression.to !== undefined) {
      const { data } = table.sets.get(expression.set)!;
      if (data === undefined || (data === 'verdict') !== (expression.to === 'verdict')) throw new Refused(EINVAL);
    }
    return expression;
  });
}

function checkTarget(table: TableState, name: string): void {
  const target = table.chains.get(name);
  if (!target) throw new Refused(ENOENT);
  if (target.base) throw new Refused(EOPNOTSUPP);
}

function addElements(table: TableState, { set: name, setId, elements }: NftElements, exclusive: boolean): void {
  const set = setId === undefined ? table.sets.get(name) : [...table.sets.values()].find(({ id }) => id === setId);
  if (!set) throw new Refused(ENOENT);
  const held = table.elements.get(set.name)!;
  for (const [index, element] of elements.entries()) {
    const refuse = (errno: number) => new Refused(errno, index);
    if (!element.catchAll && element.key.length !== typeLength(set.key)) throw refuse(EINVAL);
    if (!element.intervalEnd && !hasRightValue(set, element)) throw refuse(EINVAL);
    if (element.timeoutMs !== undefined && !set.flags?.includes('timeout')) throw refuse(EINVAL);
    const target = chainOf(element.verdict);
    if (target !== undefined) checkTarget(table, target);
    const key = elementKey(element);
    const existing = held.get(key);
    if (existing) {
      if (exclusive || !sameValue(existing, element)) throw refuse(EEXIST);
      continue;
    }
    if (element.keyEnd && [...held.values()].some((other) => overlaps(set, other, element))) throw refuse(EEXIST);
    if (set.size !== undefined && held.size >= set.size) throw refuse(ENFILE);
    held.set(key, element);
  }
  if (set.flags?.includes('interval') && set.key.length === 1) checkIntervals(held);
}

function hasRightValue({ data }: NftSet, element: NftElement): boolean {
  if (data === undefined) return element.data === undefined && element.verdict === undefined;
  if (data === 'verdict') return element.verdict !== undefined;
  return element.data?.length === typeLength(data);
}

/** Concatenated ranges overlap when they do so in every field. */
function overlaps(set: NftSet, a: NftElement, b: NftElement): boolean {
  let at = 0;
  for (const field of set.key) {
    const end = at + Math.ceil(typeLength([field]) / 4) * 4;
    const part = (bytes: Uint8Array) => bytes.subarray(at, end);
    if (Buffer.compare(part(a.keyEnd ?? a.key), part(b.key)) < 0) return false;
    if (Buffer.compare(part(b.keyEnd ?? b.key), part(a.key)) < 0) return false;
    at = end;
  }
  return true;
}

/** Begins and ends must take turns. */
function checkIntervals(held: ReadonlyMap<string, NftElement>): void {
  const sorted = [...held.values()].sort(
    (a, b) => Buffer.compare(a.key, b.key) || Number(b.intervalEnd ?? false) - Number(a.intervalEnd ?? false),
  );
  let open = false;
  for (const { intervalEnd = false } of sorted) {
    if (!intervalEnd && open) throw new Refused(EEXIST);
    open = !intervalEnd;
  }
}

function flush(state: RulesetState, object: Extract<NftChange, { operation: 'flush' }>['object']): void {
  if (object.kind === 'table') {
    const table = state.get(tableKey(object.family, object.name));
    if (!table) throw new Refused(ENOENT);
    const rules = allRules(table);
    for (const chain of table.rules.keys()) table.rules.set(chain, []);
    dropAnonymous(table, rules);
    return;
  }
  const table = tableOf(state, object);
  if (object.kind === 'chain') {
    removeRule(table, { ...object, kind: 'rule', chain: object.name, handle: undefined });
    return;
  }
  if (!table.sets.has(object.name)) throw new Refused(ENOENT);
  table.elements.set(object.name, new Map());
}

function remove(state: RulesetState, object: NftRef, lenient: boolean): void {
  if (object.kind === 'table') {
    if (!state.delete(tableKey(object.family, object.name))) throw new Refused(ENOENT);
    return;
  }
  const table = tableOf(state, object);
  if (object.kind === 'rule') removeRule(table, object);
  else if (object.kind === 'elements') removeElements(table, object, lenient);
  else removeNamed(table, object);
}

function removeNamed(table: TableState, object: ChainRef | SetRef | CounterRef): void {
  const named: Map<string, unknown> = { chain: table.chains, set: table.sets, counter: table.counters }[object.kind];
  if (!named.has(object.name)) throw new Refused(ENOENT);
  // Also by a rule of its own, which would go with it.
  if (isReferred(table, object.kind, object.name)) throw new Refused(EBUSY);
  if (object.kind === 'chain') {
    const rules = table.rules.get(object.name)!;
    table.rules.delete(object.name);
    dropAnonymous(table, rules);
  }
  named.delete(object.name);
  if (object.kind === 'set') table.elements.delete(object.name);
}

/** Without a handle, all rules of the chain. */
function removeRule(table: TableState, { chain, handle }: RuleRef): void {
  const rules = table.rules.get(chain);
  if (!rules) throw new Refused(ENOENT);
  const removed = handle === undefined ? rules : [rules[indexOf(rules, handle)]!];
  table.rules.set(
    chain,
    rules.filter((rule) => !removed.includes(rule)),
  );
  dropAnonymous(table, removed);
}

function removeElements(table: TableState, { set, elements }: NftElements, lenient: boolean): void {
  const held = table.elements.get(set);
  if (!held) {
    if (lenient) return;
    throw new Refused(ENOENT);
  }
  const length = typeLength(table.sets.get(set)!.key);
  for (const [index, element] of elements.entries()) {
    if (!element.catchAll && element.key.length !== length) throw new Refused(EINVAL, index);
    if (!held.delete(elementKey(element)) && !lenient) throw new Refused(ENOENT, index);
  }
}

/** Anonymous sets go with the rule they belong to. */
function dropAnonymous(table: TableState, rules: readonly NftRule[]): void {
  for (const { set } of rules.flatMap(({ expressions }) => expressions.map(references))) {
    if (set === undefined || !table.sets.get(set)?.flags?.includes('anonymous')) continue;
    table.sets.delete(set);
    table.elements.delete(set);
  }
}
