import { afterAll, describe, expect, it } from 'vitest';
import type { ServicePortPlan } from '../../../src/proxy/index.ts';
import { IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import type { Exec } from '../../../src/sys/index.ts';
import { inputText } from '../../fakes/exec-input.ts';
import { completePlan } from '../../samples/complete-plan.ts';
import { samplePort } from '../../samples/sample-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { CASES, execIn, saved, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

/**
 * Gives the list of clients of Service "shop/unkernelly" a name that iptables takes and the kernel refuses (xt_recent
 * makes a file of it): the plan itself can hold nothing like it.
 */
function withNameForKernelToRefuse(inner: Exec): Exec {
  return (program, args, options) => {
    const input = options?.input && inputText(options).replace(/^(.*"shop\/unkernelly.*--name )\S+/gm, '$1a/b');
    return inner(program, args, { ...options, ...(input !== undefined && { input }) });
  };
}

describe.each(CASES)('%s %s: a Service iptables or the kernel refuses', (family, variant) => {
  const [clusterIp, pod] = family === 'IPv4' ? ['10.96.20.9', '10.9.9.9:1'] : ['fd00:10:96::99', '[fd00:9::9]:1'];
  const sticky = (name: string, affinitySeconds: number) =>
    samplePort({ name, clusterIp, affinitySeconds, remote: [pod] });
  // The plan never holds such a timeout: the option takes 32 bits.
  const unparsable = { ...sticky('shop/unparsable', 600), affinitySeconds: 5e10 };
  const unkernelly = sticky('shop/unkernelly', 600);

  function setup() {
    const namespace = createNamespace(`refused-${variant}`);
    const exec = execIn(namespace);
    const dataplane = new IptablesDataplane({ family, variant, exec: withNameForKernelToRefuse(exec) });
    const complete = completePlan(family);
    const ports = new Map(complete.ports);
    const plan = { ...complete, ports };
    const upsert = (...upserted: ServicePortPlan[]) => {
      for (const port of upserted) ports.set(port.key, port);
      return dataplane.sync(plan, { upserted, removed: [] });
    };
    return { dataplane, ports, plan, upsert, state: () => saved(exec, family, variant) };
  }

  it('is left out and named, and all others are programmed', async () => {
    const { dataplane, ports, plan, upsert, state } = setup();
    ports.set(unkernelly.key, unkernelly);
    const first = await dataplane.resync(plan);
    expect(first.leftOut!.map(({ name }) => name)).toEqual(['shop/unkernelly']);
    ports.delete(unkernelly.key);
    await dataplane.sync(plan, { upserted: [], removed: [unkernelly] });
    const before = await state();

    const good = samplePort({ name: 'shop/good', clusterIp: clusterIp.replace(/9$/, '8'), remote: [pod] });
    const { leftOut } = await upsert(unparsable, good, unkernelly);
    expect(leftOut!.map(({ name }) => name)).toEqual(['shop/unkernelly', 'shop/unparsable']);
    expect(leftOut![1]!.reason).toContain('--seconds 50000000000');
    expect(leftOut![1]!.reason).toContain('which belongs to Service port "shop/unparsable"');
    const after = JSON.stringify(await state());
    expect(after).toContain('shop/good');
    expect(after).not.toMatch(/unparsable|unkernelly|PROBE/);
    expect(await dataplane.verify()).toEqual([]);

    for (const port of [good, unparsable, unkernelly]) ports.delete(port.key);
    await dataplane.sync(plan, { upserted: [], removed: [good, unparsable, unkernelly] });
    expect(await state()).toEqual(before);
  });

  it('is programmed once it is mended', async () => {
    const { dataplane, plan, upsert, state } = setup();
    await dataplane.resync(plan);
    await upsert(unparsable);
    expect((await upsert(sticky('shop/unparsable', 600))).leftOut).toEqual([]);
    expect(JSON.stringify(await state())).toContain('shop/unparsable');
    expect(await dataplane.verify()).toEqual([]);
  });
});
