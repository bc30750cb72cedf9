import type {
  Expression,
  NftChain,
  NftCounter,
  NftElement,
  NftFamily,
  NftRule,
  NftSet,
  NftTable,
} from '../../src/netlink/nftables/index.ts';

/** What a table holds. Objects are never changed, only replaced, so that a copy of the maps is a copy of the state. */
export interface TableState {
  readonly table: NftTable;
  readonly chains: Map<string, NftChain>;
  /** Rules by chain, in their order. */
  readonly rules: Map<string, readonly NftRule[]>;
  readonly sets: Map<string, NftSet>;
  /** Elements by set, then by `elementKey`. */
  readonly elements: Map<string, Map<string, NftElement>>;
  readonly counters: Map<string, NftCounter>;
  /** The handle the next object gets. */
  nextHandle: number;
}

/** All tables, by `tableKey`. */
export type RulesetState = Map<string, TableState>;

export function tableKey(family: NftFamily, name: string): string {
  return `${family} ${name}`;
}

export function emptyTable(table: NftTable): TableState {
  return {
    table,
    chains: new Map(),
    rules: new Map(),
    sets: new Map(),
    elements: new Map(),
    counters: new Map(),
    nextHandle: 1,
  };
}

/** A copy that can be changed without changing the original. */
export function copyState(state: RulesetState): RulesetState {
  return new Map(
    [...state].map(([key, table]) => [
      key,
      {
        ...table,
        chains: new Map(table.chains),
        rules: new Map(table.rules),
        sets: new Map(table.sets),
        elements: new Map([...table.elements].map(([name, elements]) => [name, new Map(elements)])),
        counters: new Map(table.counters),
      },
    ]),
  );
}

/** What identifies an element in its set. */
export function elementKey({ key, keyEnd, intervalEnd, catchAll }: NftElement): string {
  if (catchAll) return '*';
  return `${hex(key)}${keyEnd && hex(keyEnd) !== hex(key) ? `-${hex(keyEnd)}` : ''}${intervalEnd ? ' end' : ''}`;
}

/** Whether two elements have the same value. */
export function sameValue(a: NftElement, b: NftElement): boolean {
  const value = ({ data, verdict }: NftElement) =>
    data ? hex(data) : verdict ? `${verdict.kind} ${'chain' in verdict ? verdict.chain : ''}` : '';
  return value(a) === value(b);
}

/** The names of chains, sets and counters an expression refers to. */
export function references(expression: Expression): {
  readonly chain?: string;
  readonly set?: string;
  readonly counter?: string;
} {
  switch (expression.kind) {
    case 'verdict':
      return 'chain' in expression.verdict ? { chain: expression.verdict.chain } : {};
    case 'lookup':
    case 'dynset':
      return { set: expression.set };
    case 'objref':
      return { counter: expression.name };
    default:
      return {};
  }
}

/** All rules of a table. */
export function allRules(table: TableState): NftRule[] {
  return [...table.rules.values()].flat();
}

/** Whether a rule refers to the object of that name. */
export function isReferred(table: TableState, kind: 'chain' | 'set' | 'counter', name: string): boolean {
  const byRule = allRules(table).some((rule) =>
    rule.expressions.some((expression) => references(expression)[kind] === name),
  );
  return byRule || (kind === 'chain' && allElements(table).some(({ verdict }) => chainOf(verdict) === name));
}

/** The chain a verdict goes on with. */
export function chainOf(verdict: NftElement['verdict']): string | undefined {
  return verdict && 'chain' in verdict ? verdict.chain : undefined;
}

function allElements(table: TableState): NftElement[] {
  return [...table.elements.values()].flatMap((elements) => [...elements.values()]);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}
