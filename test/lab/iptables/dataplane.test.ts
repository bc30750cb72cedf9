import { afterAll, describe, expect, it } from 'vitest';
import { parseIp } from '../../../src/core/index.ts';
import type { ServicePortPlan } from '../../../src/proxy/index.ts';
import { IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import type { IptablesVariant } from '../../../src/proxy/rules/index.ts';
import { completePlan } from '../../samples/complete-plan.ts';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { CASES, execIn, recordingExec, saved, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

const variants: IptablesVariant[] = ['legacy', 'nft'];

function setup(variant: IptablesVariant) {
  const namespace = createNamespace(`dp-${variant}`);
  const recorder = recordingExec(execIn(namespace));
  const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec: recorder.exec });
  const ports = new Map(completePlan('IPv4').ports);
  const plan = { ...completePlan('IPv4'), ports };
  const upsert = (...upserted: ServicePortPlan[]) => {
    for (const port of upserted) ports.set(port.key, port);
    return dataplane.sync(plan, { upserted, removed: [] });
  };
  return { namespace, ...recorder, dataplane, ports, plan, upsert };
}

/** A Service with this many endpoints. */
const wide = (endpoints: number) =>
  samplePort({
    name: 'shop/wide:http',
    clusterIp: '10.96.20.1',
    remote: Array.from({ length: endpoints }, (_, n) => `10.244.3.${n}:8080`),
  });

describe.each(variants)('%s', (variant) => {
  it('writes little for a small change and runs nothing for none', async () => {
    const { dataplane, plan, upsert, restores, calls } = setup(variant);
    await dataplane.resync(plan);
    await upsert(wide(10));
    restores.length = 0;
    calls.length = 0;
    const { objects } = await upsert(wide(11));
    expect(objects.nat!.written).toBe(12);
    expect(objects.nat!.total).toBeGreaterThan(150);
    expect(restores).toHaveLength(1);
    expect(restores[0]!.length).toBeLessThan(4096);
    expect(restores[0]).not.toContain('*filter');
    await upsert(wide(11));
    await dataplane.sync(plan, { upserted: [], removed: [] });
    expect(calls).toEqual([`iptables-${variant}-restore`]);
    expect(await dataplane.verify()).toEqual([]);
  });

  it('finds what others changed, and a resync repairs just that', async () => {
    const { dataplane, plan, namespace, exec, restores } = setup(variant);
    await dataplane.resync(plan);
    const before = await saved(exec, 'IPv4', variant);
    const iptables = (...args: string[]) => namespace.run(`iptables-${variant}`, ...args);
    iptables('-t', 'nat', '-D', 'PREROUTING', '1');
    iptables('-t', 'nat', '-F', 'KUBE-SVC-67NZLRHBNDSAWJRO');
    iptables('-t', 'nat', '-N', 'KUBE-SEP-STRANGE');
    iptables('-I', 'KUBE-FORWARD', '-j', 'DROP');
    expect(await dataplane.verify()).toMatchObject([
      { object: 'filter chain KUBE-FORWARD', difference: 'changed' },
      { object: 'jump nat PREROUTING -> KUBE-SERVICES', difference: 'missing' },
      { object: 'nat chain KUBE-SVC-67NZLRHBNDSAWJRO', difference: 'changed' },
      { object: 'nat chain KUBE-SEP-STRANGE', difference: 'unexpected' },
    ]);
    restores.length = 0;
    await dataplane.resync(plan);
    expect(await saved(exec, 'IPv4', variant)).toEqual(before);
    expect(restores[0]!.length).toBeLessThan(2000);
    expect(await dataplane.verify()).toEqual([]);
  });

  it('notices that everything was flushed', async () => {
    const { dataplane, plan, namespace, exec } = setup(variant);
    await dataplane.resync(plan);
    const before = await saved(exec, 'IPv4', variant);
    for (const table of ['filter', 'nat']) {
      for (const flush of ['-F', '-X']) namespace.run(`iptables-${variant}`, '-t', table, flush);
    }
    expect((await dataplane.verify()).length).toBeGreaterThan(50);
    await dataplane.resync(plan);
    expect(await saved(exec, 'IPv4', variant)).toEqual(before);
  });

  it('gives an address and port that two Services want to the first by name, whoever came first', async () => {
    const { dataplane, plan, ports, upsert, exec } = setup(variant);
    await dataplane.resync(plan);
    const claim = (name: string, pod: string) =>
      samplePort({ name, clusterIp: '10.96.30.1', nodePort: 30777, remote: [pod] });
    const chosen = async () => {
      const chains = await saved(exec, 'IPv4', variant);
      return Object.entries(chains)
        .filter(([name]) => name.startsWith('nat '))
        .flatMap(([, rules]) => rules.filter((rule) => /( 30777| 10\.96\.30\.1\/32) .*-j KUBE-(SVC|EXT)-/.test(rule)))
        .map((rule) => /--comment "?([^" ]+)/.exec(rule)![1])
        .sort();
    };
    const [early, late] = [claim('a/first', '10.244.9.1:80'), claim('b/second', '10.244.9.2:80')];
    await upsert(late);
    expect(await chosen()).toEqual(['b/second', 'b/second']);
    await upsert(early);
    expect(await chosen()).toEqual(['a/first', 'a/first']);
    ports.delete(early.key);
    await dataplane.sync(plan, { upserted: [], removed: [early] });
    expect(await chosen()).toEqual(['b/second', 'b/second']);
    expect(await dataplane.verify()).toEqual([]);
  });

  it('nests chains as deep as nf_tables lets it, and no deeper', async () => {
    const { dataplane, plan, upsert, exec } = setup(variant);
    await dataplane.resync(plan);
    // Addresses that fill a block make the deepest tree, and these go the longest way behind it: source ranges, affinity.
    const loadBalancerVips = Array.from({ length: 2 ** 14 + 1 }, (_, n) => `203.1.${n >> 8}.${n & 255}`);
    const restricted = { loadBalancerVips: ['203.1.0.0'], sourceRanges: ['198.18.0.0/15'], affinitySeconds: 10 };
    const port = samplePort({ name: 'deep/lb', clusterIp: '10.96.30.1', remote: ['10.244.9.1:80'], ...restricted });
    // The planner keeps to a thousand a Service: of several Services they make the same tree.
    await upsert({ ...port, loadBalancerVips: loadBalancerVips.map(parseIp) });
    expect(await dataplane.verify()).toEqual([]);
    const chains = await saved(exec, 'IPv4', variant);
    const depthBelow = (chain: string): number => {
      const below = (chains[`nat ${chain}`] ?? []).map((rule) => /(?:^| )-[jg] (KUBE-\S+)$/.exec(rule)?.[1]);
      return Math.max(0, ...[...new Set(below)].map((target) => (target ? 1 + depthBelow(target) : 0)));
    };
    expect(depthBelow('PREROUTING')).toBe(15);
  });

  it('compiles everything anew when the node changes', async () => {
    const { dataplane, plan, exec } = setup(variant);
    await dataplane.resync(plan);
    const node = { ...plan.node, masqueradeAll: true };
    await dataplane.sync({ ...plan, node }, { upserted: [], removed: [] });
    const other = execIn(createNamespace(`other-${variant}`));
    await new IptablesDataplane({ family: 'IPv4', variant, exec: other }).resync({ ...plan, node });
    expect(await saved(exec, 'IPv4', variant)).toEqual(await saved(other, 'IPv4', variant));
  });
});

it.each(CASES)('%s %s: cleans up to what a namespace without us looks like', async (family, variant) => {
  const exec = execIn(createNamespace(`clean-${variant}`));
  const dataplane = new IptablesDataplane({ family, variant, exec });
  // The first look at a table makes it.
  await saved(exec, family, variant);
  await dataplane.resync(samplePlan(family, sampleNode(), []));
  await dataplane.cleanup();
  const empty = [
    ...['filter INPUT', 'filter FORWARD', 'filter OUTPUT'],
    ...['nat PREROUTING', 'nat INPUT', 'nat OUTPUT', 'nat POSTROUTING'],
  ];
  // iptables-nft makes only the built-in chains that were in use.
  const after = Object.entries(await saved(exec, family, variant));
  expect(after.length).toBeGreaterThan(4);
  for (const [name, rules] of after) {
    expect(empty).toContain(name);
    expect(rules).toEqual([]);
  }
});
