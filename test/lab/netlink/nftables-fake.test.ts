import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  accept,
  type Expression,
  expressionKey,
  goto,
  jump,
  lookup,
  Nftables,
  type NftChange,
  NftCommitError,
  type NftElement,
  type NftObject,
  type NftRef,
  type NftRuleset,
  type NftSet,
  payload,
} from '../../../src/netlink/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { FakeNftables } from '../../fakes/fake-nftables.ts';
import { createNamespace, removeAll } from '../namespace.ts';

let kernel: Nftables;

beforeAll(() => {
  kernel = inNetns(createNamespace('nftfake').path, () => Nftables.open());
});
afterAll(() => {
  kernel.close();
  removeAll();
});

const T = { family: 'ip', table: 't' } as const;
const TABLE = { kind: 'table', family: 'ip', name: 't' } as const;
const SETS: readonly NftSet[] = [
  { kind: 'set', ...T, name: 'plain', key: ['ipv4_addr'] },
  { kind: 'set', ...T, name: 'plain', key: ['ipv4_addr', 'inet_service'] },
  { kind: 'set', ...T, name: 'small', key: ['ipv4_addr'], size: 2 },
  { kind: 'set', ...T, name: 'verdicts', key: ['ipv4_addr'], data: 'verdict' },
  { kind: 'set', ...T, name: 'values', key: ['ipv4_addr'], data: ['inet_service'] },
];

const chainName = fc.constantFrom('a', 'b', 'base');
const chain = chainName.map(
  (name): NftObject => ({
    kind: 'chain',
    ...T,
    name,
    ...(name === 'base' && { base: { type: 'filter', hook: 'input', priority: 0 } as const }),
  }),
);
const set = fc.constantFrom(...SETS);
const expression: fc.Arbitrary<readonly Expression[]> = fc.oneof(
  fc.constant([accept]),
  chainName.map((name) => [jump(name)]),
  set.map(({ name, data }) => [
    payload.saddr('IPv4'),
    // Newer kernels refuse lookups of more than was loaded.
    payload.dport(1),
    lookup(name, data === undefined ? {} : { to: data === 'verdict' ? 'verdict' : 0 }),
  ]),
);
const rule = fc
  .tuple(chainName, expression)
  .map(([name, expressions]): NftObject => ({ kind: 'rule', ...T, chain: name, expressions }));
const element = (name: string): fc.Arbitrary<NftElement> =>
  fc.tuple(fc.nat(3), fc.nat(1), chainName).map(([host, value, target]) => ({
    key: Uint8Array.of(10, 0, 0, host),
    ...(name === 'verdicts' && { verdict: value === 0 ? ({ kind: 'drop' } as const) : goto(target).verdict }),
    ...(name === 'values' && { data: Uint8Array.of(0, value) }),
  }));
const elements = fc
  .constantFrom('plain', 'small', 'verdicts', 'values')
  .chain((name) => fc.tuple(fc.constant(name), fc.array(element(name), { minLength: 1, maxLength: 3 })))
  .map(([name, list]): NftObject => ({ kind: 'elements', ...T, set: name, elements: list }));
const table = fc.constant<NftObject>(TABLE);

const change: fc.Arbitrary<NftChange> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ operation: fc.constantFrom('add', 'create'), object: fc.oneof(chain, set, rule, elements) }),
  },
  { weight: 1, arbitrary: table.map((object): NftChange => ({ operation: 'add', object })) },
  {
    weight: 3,
    arbitrary: fc
      .oneof(chain, set, elements)
      .map((object): NftChange => ({ operation: 'delete', object: object as NftRef })),
  },
  {
    weight: 1,
    arbitrary: fc.oneof(chain, table).map((object): NftChange => ({ operation: 'destroy', object: object as NftRef })),
  },
  {
    weight: 2,
    arbitrary: fc.oneof(chain, set, table).map((object) => ({ operation: 'flush', object }) as NftChange),
  },
);

/** Errno and index of the first refusal; undefined when the transaction was done. */
function outcome(nft: NftRuleset, changes: readonly NftChange[]): string | undefined {
  try {
    nft.commit(changes);
    return undefined;
  } catch (error) {
    if (!(error instanceof NftCommitError)) throw error;
    return `${error.errnoName} at ${error.changeIndex}`;
  }
}

/** Everything there is, as text; what has no order sorted. */
function dump(nft: NftRuleset): readonly string[] {
  const hex = (bytes: Uint8Array | undefined) => (bytes ? Buffer.from(bytes).toString('hex') : '');
  return nft.listTables().flatMap((each) => [
    `table ${each.family} ${each.name}`,
    ...nft
      .listChains(each)
      .flatMap(({ name }) => nft.getChain({ kind: 'chain', family: each.family, table: each.name, name }) ?? [])
      .map((one) => `chain ${one.name} ${JSON.stringify(one.base ?? {}, Object.keys(one.base ?? {}).sort())}`)
      .sort(),
    ...nft
      .listChains(each)
      .map(
        ({ name }) =>
          `rules ${name}: ${nft
            .listRules({ kind: 'chain', ...T, name })
            .map((one) => one.expressions.map(expressionKey).join(', '))
            .join('; ')}`,
      )
      .sort(),
    ...nft
      .listSets(each)
      .flatMap((one) => [
        `set ${one.name} ${one.key.join('.')} ${String(one.data)} ${one.size}`,
        ...nft
          .listElements(one)
          .map((held) => `element ${one.name} ${hex(held.key)} ${hex(held.data)} ${JSON.stringify(held.verdict ?? '')}`)
          .sort(),
      ])
      .sort(),
  ]);
}

describe('the fake nf_tables', () => {
  it('takes and refuses what the kernel does, and holds the same afterwards', () => {
    fc.assert(
      fc.property(fc.array(fc.array(change, { minLength: 1, maxLength: 5 }), { maxLength: 12 }), (transactions) => {
        const fake = new FakeNftables();
        kernel.commit([{ operation: 'destroy', object: TABLE }]);
        for (const changes of [[{ operation: 'add', object: TABLE } as const], ...transactions]) {
          expect(outcome(fake, changes)).toBe(outcome(kernel, changes));
          expect(dump(fake)).toEqual(dump(kernel));
        }
      }),
      { numRuns: 200 },
    );
  });
});
