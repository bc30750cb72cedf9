import { expect, it } from 'vitest';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { atOnce, parseCidr } from '../../core/index.ts';
import { drop, type NftChange } from '../../netlink/nftables/index.ts';
import { addressIn } from '../match.ts';
import { changesDrift } from './changes-drift.ts';
import { trialOf } from './trial.ts';

const [family, table, set] = ['ip', 'test', 'pods'] as const;
const base = { type: 'filter', hook: 'forward', priority: 0 } as const;
const chain = { kind: 'chain', family, table, name: 'gate', base } as const;
const dropping = (address: string) =>
  ({
    kind: 'rule',
    family,
    table,
    chain: chain.name,
    expressions: [...addressIn('daddr', parseCidr(address), '=='), drop],
  }) as const;
const pods = (...last: number[]) =>
  ({
    kind: 'elements',
    family,
    table,
    set,
    elements: last.map((byte) => ({ key: Uint8Array.of(10, 0, 0, byte) })),
  }) as const;

/** A table with a chain of one rule, and a set of two addresses. */
const MADE: readonly NftChange[] = [
  { operation: 'add', object: { kind: 'table', family, name: table } },
  { operation: 'add', object: { kind: 'set', family, table, name: set, key: ['ipv4_addr'] } },
  { operation: 'add', object: chain },
  { operation: 'add', object: dropping('10.0.0.1/32') },
  { operation: 'add', object: pods(1, 2) },
];

/** What a repair that makes these changes says about a kernel in which all of the above is. */
function driftOf(...changes: readonly NftChange[]) {
  const kernel = new FakeNftables();
  kernel.commitAsOther(...MADE);
  const before = String(kernel);
  const drift = atOnce(changesDrift(kernel, changes));
  expect(String(kernel)).toBe(before);
  return drift;
}

it('sees no difference in a chain that is written anew as it is', () => {
  const flush = { operation: 'flush', object: chain } as const;
  expect(
    driftOf(flush, { operation: 'add', object: chain }, { operation: 'add', object: dropping('10.0.0.1/32') }),
  ).toEqual([]);
});

it('shows both sides of a chain that is otherwise, and only the lines that differ', () => {
  const flush = { operation: 'flush', object: chain } as const;
  expect(
    driftOf(flush, { operation: 'add', object: chain }, { operation: 'add', object: dropping('10.0.0.2/32') }),
  ).toEqual([
    {
      object: 'chain ip test gate',
      difference: 'changed',
      ours: ['ip daddr 10.0.0.2 drop'],
      theirs: ['ip daddr 10.0.0.1 drop'],
    },
  ]);
});

it('tells what is missing: a chain, an element', () => {
  const other = { ...chain, name: 'other' };
  expect(driftOf({ operation: 'add', object: other }, { operation: 'add', object: pods(2, 3) })).toEqual([
    { object: 'element of set ip test pods', difference: 'missing', ours: ['10.0.0.3'], theirs: [] },
    {
      object: 'chain ip test other',
      difference: 'missing',
      ours: ['type filter hook forward priority filter; policy accept;'],
      theirs: [],
    },
  ]);
});

it('tells what is not ours to have: an element, a rule', () => {
  const kernel = new FakeNftables();
  kernel.commitAsOther(...MADE);
  const [rule] = kernel.listRules(chain);
  const changes: NftChange[] = [
    { operation: 'delete', object: pods(1) },
    { operation: 'delete', object: rule! },
  ];
  expect(atOnce(changesDrift(kernel, changes))).toEqual([
    { object: 'element of set ip test pods', difference: 'unexpected', ours: [], theirs: ['10.0.0.1'] },
    {
      object: 'rule of chain ip test gate',
      difference: 'unexpected',
      ours: [],
      theirs: ['ip daddr 10.0.0.1 drop'],
    },
  ]);
});

it('is told of a table that is made anew for what others put into it, or because of its sets', () => {
  const anew = [{ operation: 'delete', object: { kind: 'table', family, name: table } } as const, ...MADE];
  expect(driftOf(...anew)).toEqual([{ object: 'table ip test', difference: 'changed' }]);
  const withoutChain = anew.filter(({ object }) => object.kind !== 'chain' && object.kind !== 'rule');
  expect(driftOf(...withoutChain)).toEqual([
    { object: 'chain ip test gate', difference: 'unexpected', ours: [], theirs: ['ip daddr 10.0.0.1 drop'] },
  ]);
});

it('a trial keeps what is committed to it and makes nothing of it', async () => {
  const kernel = new FakeNftables();
  const trial = trialOf(kernel);
  trial.ruleset.commit(MADE.slice(0, 1));
  await trial.ruleset.commitAsync(MADE.slice(1));
  expect(trial.changes).toEqual(MADE);
  expect([kernel.commits, trial.ruleset.listTables()]).toEqual([[], []]);
});
