import { afterAll, describe, expect, it } from 'vitest';
import type { Plan, ServicePortPlan } from '../../../src/proxy/index.ts';
import { completePlan } from '../../samples/complete-plan.ts';
import { randomChanges, seededRandom } from '../../samples/random-plan.ts';
import { snapshot } from '../../samples/ruleset-snapshot.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { dataplaneIn, openIn } from './fixtures.ts';

afterAll(removeAll);

describe.each([
  ['IPv4', 1000],
  ['IPv6', 300],
] as const)('%s', (family, steps) => {
  it('ends where a full sync begins, whatever changed one by one, with the agent killed in between', async () => {
    const namespace = createNamespace(`random-${family}`);
    const nft = openIn(namespace);
    const ports = new Map<string, ServicePortPlan>();
    const plan: Plan = { ...completePlan(family), ports };
    const random = seededRandom(11);
    let dataplane = dataplaneIn(namespace, family);
    await dataplane.resync(plan);
    let step = 0;
    for (const delta of randomChanges(family, steps, ports)) {
      const { leftOut } = await dataplane.sync(plan, delta);
      expect(leftOut).toEqual([]);
      step++;
      // Killed: a new one finds what is there, and writes only what is not needed any more.
      if (random(50) === 0) {
        dataplane.close();
        dataplane = dataplaneIn(namespace, family);
        const { objects } = await dataplane.resync(plan);
        expect(objects.elements).toMatchObject({ written: 0 });
      }
      if (step % 100 !== 0) continue;
      expect(await dataplane.verify()).toEqual([]);
      const fresh = createNamespace(`fresh-${family}-${step}`);
      const other = dataplaneIn(fresh, family);
      const full = await other.resync(plan);
      expect(used(snapshot(nft, family))).toEqual(used(snapshot(openIn(fresh), family)));
      const { objects } = await dataplane.sync(plan, { upserted: [], removed: [] });
      expect(objects.elements!.total).toBe(full.objects.elements!.total);
      other.close();
      fresh.remove();
    }
    dataplane.close();
  });
});

/** Without the chains for a number of slots no Service has at the moment: they are kept for the next one. */
function used(table: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const text = JSON.stringify(Object.entries(table).filter(([name]) => name.startsWith('set ')));
  return Object.fromEntries(
    Object.entries(table).filter(([name]) => {
      const balance = /^chain ((nodeport-)?(endpoints|local)|external|nodeport)-\d+$/.test(name);
      return !balance || text.includes(`chain\\":\\"${name.slice('chain '.length)}\\"`);
    }),
  );
}
