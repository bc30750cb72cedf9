import { readFileSync } from 'node:fs';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import { detectVariant, type IptablesVariant, whyIptablesMissing } from '../../../src/proxy/rules/index.ts';
import type { Exec } from '../../../src/sys/index.ts';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { execIn, recordingExec, saved, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

const KUBE_PROXY = readFileSync(new URL('../../golden/iptables/kube-proxy.save', import.meta.url), 'utf8');

const web = samplePort({
  name: 'shop/web:http',
  clusterIp: '10.96.0.50',
  nodePort: 30080,
  local: ['10.244.1.5:8080'],
  remote: ['10.244.2.9:8080'],
});
const plan = samplePlan('IPv4', sampleNode(), [web]);

/** Chains and rules that belong to the kubelet and the site. */
function foreign(chains: Record<string, readonly string[]>): Record<string, readonly string[]> {
  const kept = Object.entries(chains).filter(([name]) => !/ KUBE-(?!FIREWALL|KUBELET)/.test(name));
  return Object.fromEntries(
    kept.map(([name, rules]) => [name, rules.filter((rule) => !/ KUBE-(?!FIREWALL|KUBELET)\S+$/.test(rule))]),
  );
}

const proxyChains = (chains: Record<string, readonly string[]>) =>
  Object.keys(chains).filter((name) => / KUBE-(?!FIREWALL|KUBELET)/.test(name));

describe.each(['legacy', 'nft'] as IptablesVariant[])('%s: on a node where a kube-proxy was', (variant) => {
  let namespace: TestNamespace;
  let exec: Exec;
  let restores: string[];
  const state = () => saved(exec, 'IPv4', variant);
  const iptables = (...args: string[]) => namespace.run(`iptables-${variant}`, ...args);
  const load = (text: string) => exec(`iptables-${variant}-restore`, [], { input: text });

  beforeEach(async () => {
    namespace = createNamespace(`takeover-${variant}`);
    ({ exec, restores } = recordingExec(execIn(namespace)));
    expect(await load(KUBE_PROXY)).toMatchObject({ status: 0 });
    restores.length = 0;
    return () => namespace.remove();
  });

  it('replaces its rules in one restore and touches nobody else’s', async () => {
    const before = await state();
    const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec });
    await dataplane.resync(plan);
    const after = await state();
    expect(restores).toHaveLength(1);
    expect(foreign(after)).toEqual(foreign(before));
    expect(Object.keys(after).filter((name) => /KUBE-SEP-(?!HAIRPIN)|2LK67NYJXVHPMPCY/.test(name))).toEqual([]);
    expect(after['nat KUBE-SVC-67NZLRHBNDSAWJRO']).toEqual([
      '-p tcp -m comment --comment "shop/web:http" -m statistic --mode random --probability 0.50000000000 -j DNAT --to-destination 10.244.1.5:8080',
      '-p tcp -j DNAT --to-destination 10.244.2.9:8080',
    ]);
    // The jumps were there: none twice, none moved.
    expect(after['nat PREROUTING']).toEqual(before['nat PREROUTING']);
    expect(after['filter FORWARD']).toEqual(before['filter FORWARD']);
    expect(await dataplane.verify()).toEqual([]);
  });

  it('is recognised by the kubelet’s chains, or the proxy’s, whatever the default variant', async () => {
    expect(await detectVariant('IPv4', exec)).toMatchObject({ variant, otherHoldsServices: false });
    namespace.run(`iptables-${variant}`, '-t', 'mangle', '-X');
    expect(await detectVariant('IPv4', exec)).toMatchObject({ variant, reason: 'a service proxy’s chains are there' });
    const other = variant === 'nft' ? 'legacy' : 'nft';
    expect(await detectVariant('IPv4', exec, other)).toMatchObject({ variant: other, otherHoldsServices: true });
    expect(await whyIptablesMissing('IPv4', variant, exec)).toBeUndefined();
  });

  it('inserts only the jumps that are missing, in front', async () => {
    iptables('-t', 'nat', '-D', 'PREROUTING', '1');
    iptables('-D', 'INPUT', '3');
    await new IptablesDataplane({ family: 'IPv4', variant, exec }).resync(plan);
    const after = await state();
    expect(after['nat PREROUTING']).toEqual([
      '-m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      '-j SITE-NAT',
    ]);
    expect(after['filter INPUT']!.map((rule) => rule.split(' ').at(-1))).toEqual([
      ...['KUBE-PROXY-FIREWALL', 'DROP', 'KUBE-FIREWALL', 'KUBE-NODEPORTS', 'KUBE-EXTERNAL-SERVICES', 'SITE-FIREWALL'],
    ]);
  });

  it('cleans up what is its own and kube-proxy’s, and leaves the rest as it was', async () => {
    const before = await state();
    const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec });
    await dataplane.resync(plan);
    await dataplane.cleanup();
    const after = await state();
    expect(proxyChains(after)).toEqual([]);
    expect(after).toEqual(foreign(before));
    const mangle = namespace.run(`iptables-${variant}-save`, '-t', 'mangle');
    expect(mangle).toContain(':KUBE-IPTABLES-HINT');
    expect(mangle).not.toContain('KUBE-PROXY-CANARY');

    restores.length = 0;
    await dataplane.cleanup();
    expect(restores).toEqual([]);
  });

  it('empties, but cannot remove, a chain somebody else jumps to', async () => {
    iptables('-t', 'nat', '-A', 'SITE-NAT', '-j', 'KUBE-SVC-2LK67NYJXVHPMPCY');
    const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec });
    await dataplane.resync(plan);
    expect((await state())['nat KUBE-SVC-2LK67NYJXVHPMPCY']).toEqual([]);
    expect(await dataplane.verify()).toEqual([]);
    await new IptablesDataplane({ family: 'IPv4', variant, exec }).resync(plan);
    await dataplane.cleanup();
    const after = await state();
    expect(proxyChains(after)).toEqual(['nat KUBE-SVC-2LK67NYJXVHPMPCY']);
    expect(after['nat SITE-NAT']).toContain('-j KUBE-SVC-2LK67NYJXVHPMPCY');
  });
});

/** What a kube-proxy restores at its first sync: its entry chains, and every chain of its five prefixes swept. */
function kubeProxyRestore(natChains: readonly string[]): string {
  const entries = ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ'];
  const stale = natChains.filter((name) => /^KUBE-(SVC|SVL|SEP|FW|EXT)-/.test(name));
  return [
    '*nat',
    ...[...entries, 'KUBE-SVC-THEIROWN', ...stale].map((name) => `:${name} - [0:0]`),
    '-A KUBE-SERVICES -d 10.96.0.50/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-THEIROWN',
    '-A KUBE-SVC-THEIROWN -p tcp -j DNAT --to-destination 10.244.1.5:8080',
    '-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN',
    '-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000',
    ...stale.map((name) => `-X ${name}`),
    'COMMIT',
    '',
  ].join('\n');
}

it.each(['legacy', 'nft'] as IptablesVariant[])('%s: a kube-proxy can take over from us', async (variant) => {
  const namespace = createNamespace(`handback-${variant}`);
  const exec = execIn(namespace);
  const ports = Array.from({ length: 60 }, (_, n) =>
    samplePort({
      name: `shop/web-${n}:http`,
      clusterIp: `10.96.${n}.${n}`,
      nodePort: 30_000 + n,
      local: Array.from({ length: 6 }, (_, pod) => `10.244.1.${(n + pod * 40) % 250}:8080`),
    }),
  );
  await new IptablesDataplane({ family: 'IPv4', variant, exec }).resync(samplePlan('IPv4', sampleNode(), ports));
  const natChains = async () =>
    Object.keys(await saved(exec, 'IPv4', variant)).flatMap((name) => (name.startsWith('nat ') ? name.slice(4) : []));
  const before = await natChains();
  // Trees over Service addresses and NodePorts are there, and the search for pods that reach themselves.
  for (const chain of [/^KUBE-SVC-10\.96\./, /^KUBE-EXT-tcp-/, /^KUBE-SEP-HAIRPIN$/]) {
    expect(before.some((name) => chain.test(name))).toBe(true);
  }
  const result = await exec(`iptables-${variant}-restore`, ['--noflush'], { input: kubeProxyRestore(before) });
  expect(result).toMatchObject({ status: 0, stderr: '' });
  expect((await natChains()).filter((name) => name.startsWith('KUBE-')).sort()).toEqual([
    ...['KUBE-MARK-MASQ', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-SERVICES', 'KUBE-SVC-THEIROWN'],
  ]);
});
