import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { CommitChange, NftCommit } from '../../netlink/nftables/index.ts';
import { commitText, RULE_CHANGES_KEPT, RuleChanges } from './rule-changes.ts';

const change = (
  verb: CommitChange['verb'],
  object: CommitChange['object'],
  name?: string,
  count = 1,
  table = 'firewalld',
): CommitChange => ({ verb, object, family: 'inet', table, name, count });

const commit = (program: string, ...changes: CommitChange[]): NftCommit => ({
  generation: 1,
  processId: 812,
  processName: program,
  changes,
  total: changes.reduce((sum, { count }) => sum + count, 0),
});

it.each<[string, readonly CommitChange[]]>([
  ['removed chain inet firewalld filter_FORWARD', [change('removed', 'chain', 'filter_FORWARD')]],
  ['added a rule in inet firewalld INPUT', [change('added', 'rule', 'INPUT')]],
  // A table goes with what is in it.
  [
    'removed table inet firewalld, added 3 rules in inet other INPUT',
    [
      change('removed', 'rule', 'INPUT', 12),
      change('removed', 'chain', 'INPUT'),
      change('removed', 'table'),
      change('added', 'rule', 'INPUT', 3, 'other'),
    ],
  ],
  [
    'removed table inet a, removed table inet b, removed table inet c, and 2 more',
    ['a', 'b', 'c', 'd', 'e'].map((table) => change('removed', 'table', undefined, 1, table)),
  ],
])('%s', (text, changes) => {
  expect(commitText(commit('x', ...changes))).toBe(text);
});

it('keeps the last ones, and what is done again only once', async () => {
  const clock = new FakeClock();
  const changes = new RuleChanges(clock);
  changes.add(commit('firewalld', change('removed', 'chain', 'first')));
  for (let i = 0; i < RULE_CHANGES_KEPT - 1; i++) changes.add(commit('nft', change('added', 'set', String(i))));
  await clock.advance(1000);
  changes.add(commit('firewalld', change('removed', 'chain', 'first')));
  expect(changes.kept).toHaveLength(RULE_CHANGES_KEPT);
  expect(changes.kept.at(-1)).toMatchObject({ program: 'firewalld', pid: 812, count: 2, at: clock.now() });
  changes.add(commit('nft', change('added', 'set', 'one more')));
  expect(changes.kept).toHaveLength(RULE_CHANGES_KEPT);
  expect(changes.kept[0]).toMatchObject({ what: 'added set inet firewalld 1' });
  changes.add('lost');
  expect(changes.missed).toBe(1);
});

it('calls a live trace by its name', () => {
  const changes = new RuleChanges(new FakeClock());
  changes.add(commit('node', change('added', 'table', undefined, 1, 'nodeplane-trace')));
  changes.add(
    commit('nft', ...['nodeplane-trace', 'a'].map((table) => change('removed', 'table', undefined, 1, table))),
  );
  expect(changes.kept.map(({ program }) => program)).toEqual(['nodeplane trace', 'nft']);
});

it('leaves out what nodeplane itself tries out', () => {
  const changes = new RuleChanges(new FakeClock());
  const probe = change('added', 'chain', 'probe', 1, 'nodeplane-probe-812');
  changes.add(commit('node', change('added', 'table', undefined, 1, 'nodeplane-probe-812'), probe));
  expect(changes.kept).toEqual([]);
  changes.add(commit('node', probe, change('added', 'rule', 'INPUT')));
  expect(changes.kept).toHaveLength(1);
});
