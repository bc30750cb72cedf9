import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab.ts';

const lab = createLab();
const [node, other] = [lab.addNode({ name: 'node-1' }), lab.addNode({ name: 'node-2' })];
const [a, b, far] = [node.addPod('a'), node.addPod('b'), other.addPod('far')];

beforeAll(async () => {
  for (const pod of [a, b, far]) await pod.serve({ port: 8080 });
  await node.serve({ port: 7000 });
});
afterAll(removeAll);

describe.each(['IPv4', 'IPv6'] as const)('pods attached by the plugin, %s', (family) => {
  it('reach pods of their own node and of another with their own address', async () => {
    for (const server of [b, far]) {
      const outcome = await a.connect({ ip: server.ip(family), port: 8080 });
      expect(outcome).toMatchObject({ kind: 'answered', by: server.name, source: a.ip(family) });
    }
  });

  it('reach the processes of their node, and are reached by them', async () => {
    const target = { ip: node.ip(family), port: 7000 };
    expect(await a.connect(target)).toMatchObject({ by: 'node-1', source: a.ip(family) });
    expect(await node.connect({ ip: b.ip(family), port: 8080 })).toMatchObject({ kind: 'answered', by: 'b' });
  });
});

it('takes addresses from the node’s pod ranges and gives them back with DEL', async () => {
  expect(a.ips[0]).toMatch(/^10\.244\.1\./);
  expect(a.ips[1]).toMatch(/^fd00:10:244:1::/);
  const reserved = () =>
    readdirSync(join(lab.folder, 'ipam-node-1', 'lab')).filter((name) => /^[\da-f]+[.:]/.test(name));
  const before = reserved();
  const passing = node.addPod('passing');
  expect(reserved()).toHaveLength(before.length + 2);
  await passing.remove();
  expect(reserved()).toEqual(before);
  const ports = node.namespace.run('ip', '-o', 'link', 'show', 'type', 'veth');
  expect(ports.trim().split('\n')).toHaveLength(3);
});

it('tells the plugin’s own words when an attachment fails', () => {
  const broken = {
    ...node.conflist,
    plugins: [{ type: 'nodeplane-cni', bridge: 'cni0', ipam: { type: 'host-local' } }],
  };
  expect(() => node.addPod('refused', { conflist: broken })).toThrow(
    /CNI ADD by nodeplane-cni failed: .*"code": ?\d+/s,
  );
});

it('reads rules and counters of both iptables variants', async () => {
  for (const variant of ['legacy', 'nft'] as const) {
    const program = `iptables-${variant}`;
    node.namespace.run(program, '-N', 'LAB-COUNT');
    node.namespace.run(program, '-A', 'LAB-COUNT', '-p', 'tcp', '--dport', '7000');
    node.namespace.run(program, '-A', 'INPUT', '-j', 'LAB-COUNT');
    expect(node.iptablesSave(variant)).toContain('-A INPUT -j LAB-COUNT');
    const packets = () => node.iptablesCounters(variant).find((rule) => rule.chain === 'LAB-COUNT')?.packets;
    expect(packets()).toBe(0);
    await a.connect({ ip: node.ip(), port: 7000 });
    expect(packets()).toBeGreaterThan(2);
    expect(node.iptablesCounters(variant, 'IPv6').filter((rule) => rule.chain === 'LAB-COUNT')).toEqual([]);
  }
});
