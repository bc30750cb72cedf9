import { describe, expect, it } from 'vitest';
import { FakeIptables } from '../../../test/fakes/fake-iptables.ts';
import { sampleNode, samplePlan, samplePort } from '../../../test/samples/sample-plan.ts';
import type { ServicePortPlan } from '../index.ts';
import { IptablesDataplane } from './dataplane.ts';

const port = (n: number, address = `10.244.2.${n}:80`, endpoints: readonly string[] = [address]) =>
  samplePort({ name: `shop/web-${n}`, clusterIp: `10.96.0.${n}`, remote: endpoints });
const many = (count: number) => Array.from({ length: count }, (_, n) => port(n + 1));

/** What is refused: rules with `byLine` in them by the program, those with `byCommit` by the kernel. */
interface Dislikes {
  byLine?: string | undefined;
  byCommit?: string | undefined;
  /** Whatever the input is. */
  everything?: { status: number; stderr: string } | undefined;
}

function setup(ports: readonly ServicePortPlan[], dislikes: Dislikes) {
  const iptables = new FakeIptables();
  const { exec, restores } = iptables;
  const has = (line: string, marker: string | undefined) =>
    marker !== undefined && line.startsWith('-A') && line.includes(marker);
  iptables.refuse = (line) =>
    has(line, dislikes.byLine) ? 'program' : has(line, dislikes.byCommit) ? 'kernel' : undefined;
  iptables.instead = (command) => (command.includes('-restore') ? dislikes.everything : undefined);
  const plan = { ...samplePlan('IPv4', sampleNode(), ports), ports: new Map(ports.map((each) => [each.key, each])) };
  const dataplane = new IptablesDataplane({ family: 'IPv4', variant: 'legacy', exec });
  const upsert = (...upserted: ServicePortPlan[]) => {
    for (const each of upserted) plan.ports.set(each.key, each);
    return dataplane.sync(plan, { upserted, removed: [] });
  };
  return { dataplane, iptables, plan, restores, upsert };
}

describe('a Service port iptables refuses', () => {
  it.each(['byLine', 'byCommit'] as const)(
    'is left out of a resync, and the others are programmed: %s',
    async (how) => {
      const { dataplane, plan, restores } = setup(many(100), { [how]: '10.244.2.77:80' });
      const { leftOut, objects } = await dataplane.resync(plan);
      expect(leftOut).toEqual([
        { key: 'shop/web-77/TCP', name: 'shop/web-77', reason: expect.stringContaining('failed with status') },
      ]);
      expect(restores.at(-1)).toContain('"shop/web-76"');
      expect(restores.at(-1)).not.toContain('shop/web-77"');
      expect(restores.at(-1)).not.toContain('10.96.0.77/32');
      expect(objects.nat!.total).toBeGreaterThan(200);
      expect(restores.length).toBeLessThan(20);
    },
  );

  it.each(['byLine', 'byCommit'] as const)('is left out of a change: %s', async (how) => {
    const { dataplane, plan, upsert } = setup(many(50), { [how]: 'BAD' });
    expect((await dataplane.resync(plan)).leftOut).toEqual([]);
    // A fault in a tree, whose rules are not in a chain of the Service.
    const { leftOut, isWhole } = await upsert(port(60), { ...port(61), name: 'shop/BAD' });
    expect(isWhole).toBe(true);
    expect(leftOut!.map(({ key }) => key)).toEqual(['shop/web-61/TCP']);
    expect((await upsert(port(62))).leftOut).toEqual(leftOut);
  });

  it('is tried again when it changes, and at a resync', async () => {
    const dislikes: Dislikes = { byLine: '10.244.9.9' };
    const { dataplane, plan, restores, upsert } = setup(many(5), dislikes);
    await dataplane.resync(plan);
    expect((await upsert(port(1, '10.244.9.9:80'), port(2, '10.244.9.9:80'))).leftOut).toHaveLength(2);
    expect((await upsert(port(1))).leftOut!.map(({ key }) => key)).toEqual(['shop/web-2/TCP']);
    dislikes.byLine = undefined;
    expect((await dataplane.resync(plan)).leftOut).toEqual([]);
    expect(restores.at(-1)).toContain('10.244.9.9:80');
  });

  it('is forgotten when it goes', async () => {
    const { dataplane, plan } = setup([...many(5), port(9, '10.244.9.9:80')], { byLine: '10.244.9.9' });
    expect((await dataplane.resync(plan)).leftOut).toHaveLength(1);
    const gone = plan.ports.get('shop/web-9/TCP')!;
    plan.ports.delete(gone.key);
    expect((await dataplane.sync(plan, { upserted: [], removed: [gone] })).leftOut).toEqual([]);
  });

  it('may be one of many', async () => {
    const bad = Array.from({ length: 20 }, (_, n) => port(n + 100, '10.244.9.9:80'));
    const { dataplane, plan, restores } = setup([...many(20), ...bad], { byLine: '10.244.9.9' });
    expect((await dataplane.resync(plan)).leftOut).toHaveLength(20);
    expect(restores.length).toBeLessThan(100);
  });
});

it('leaves out what it has no time to try when very many are refused, and goes on with it at the next full sync', async () => {
  const bad = Array.from({ length: 100 }, (_, n) => port(n + 100, '10.244.9.9:80'));
  const { dataplane, iptables, plan, restores } = setup([...many(20), ...bad], { byCommit: '10.244.9.9' });
  let { leftOut } = await dataplane.resync(plan);
  expect(leftOut!.some(({ untried }) => untried)).toBe(true);
  expect(restores.length).toBeLessThan(110);
  for (let round = 0; leftOut!.some(({ untried }) => untried) && round < 10; round++) {
    ({ leftOut } = await dataplane.resync(plan));
  }
  expect(leftOut).toHaveLength(100);
  expect(iptables.dump('IPv4', 'legacy')).toContain('"shop/web-20"');
}, 60_000);

describe('a failure that is nobody’s', () => {
  it.each([
    ['a lock', { status: 4, stderr: 'Another app is currently holding the xtables lock' }, 'for the xtables lock'],
    ['no line named', { status: 4, stderr: 'Out of memory' }, 'Out of memory'],
    ['no rule at fault', { status: 1, stderr: 'iptables-restore: line 1 failed' }, 'line 1 failed'],
  ])('fails the whole sync within few tries: %s', async (_, everything, told) => {
    const dislikes: Dislikes = {};
    const { dataplane, plan, restores, upsert } = setup(many(20), dislikes);
    await dataplane.resync(plan);
    dislikes.everything = everything;
    restores.length = 0;
    await expect(upsert(port(30), port(31))).rejects.toThrow(told);
    expect(restores.length).toBeLessThan(8);
    dislikes.everything = undefined;
    expect((await upsert(port(32))).leftOut).toEqual([]);
    expect(restores.at(-1)).toContain('shop/web-30');
  });
});
