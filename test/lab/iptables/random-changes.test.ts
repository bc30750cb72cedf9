import { afterAll, describe, expect, it } from 'vitest';
import { IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import { completePlan } from '../../samples/complete-plan.ts';
import { randomChanges } from '../../samples/random-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { CASES, execIn, saved, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

describe.each(CASES)('%s %s', (family, variant) => {
  // The code that differs by family is the text of the rules, so IPv6 need not walk as far.
  const steps = family === 'IPv4' ? 1000 : 200;

  it(`holds after ${steps} random changes exactly the rules of a fresh resync`, async () => {
    const changing = execIn(createNamespace(`rand-${variant}`));
    const fresh = execIn(createNamespace(`fresh-${variant}`));
    const { node } = completePlan(family);
    const dataplane = new IptablesDataplane({ family, variant, exec: changing });
    const ports = new Map();
    await dataplane.resync({ family, node, ports });
    for (const delta of randomChanges(family, steps, ports)) {
      await dataplane.sync({ family, node, ports }, delta);
    }
    expect(ports.size).toBeGreaterThan(50);
    expect(await dataplane.verify()).toEqual([]);

    const { objects } = await new IptablesDataplane({ family, variant, exec: fresh }).resync({ family, node, ports });
    expect(await saved(changing, family, variant)).toEqual(await saved(fresh, family, variant));
    const nothing = await dataplane.sync({ family, node, ports }, { upserted: [], removed: [] });
    expect(nothing.objects.nat).toEqual({ total: objects.nat!.total, written: 0 });

    const removed = [...ports.values()];
    ports.clear();
    await dataplane.sync({ family, node, ports }, { upserted: [], removed });
    const empty = execIn(createNamespace(`empty-${variant}`));
    await new IptablesDataplane({ family, variant, exec: empty }).resync({ family, node, ports });
    expect(await saved(changing, family, variant)).toEqual(await saved(empty, family, variant));
  }, 180_000);
});
