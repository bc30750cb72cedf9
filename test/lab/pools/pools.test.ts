import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { formatCidr, ipFromValue, parseCidr, parseIp, spanContains, spanOfCidr } from '../../../src/core/index.ts';
import type { Host } from '../host.ts';
import { type Agent, removeAll } from '../lab.ts';
import type { TestNamespace } from '../namespace.ts';
import { patient } from '../patience.ts';
import { createPoolCluster, type PoolCluster, type PoolNode } from './shared-pool.ts';

// Two nodes share pools by the real agent, and pods of theirs talk. Blocks of 16 addresses are full with 13 pods.

const FLAGS = ['--routes', 'auto', '--pod-cidrs-from', 'pool', '--pool-cidrs', '10.77.0.0/25,fd00:77::/120'];
FLAGS.push('--pool-block-size', '28', '--pool-block-size-ipv6', '124');
const PORT = 8080;

let cluster: PoolCluster;
let one: PoolNode;
let two: PoolNode;
let agents: Agent[];
let pods: [Host, Host];
const filled: TestNamespace[] = [];

beforeAll(async () => {
  cluster = await createPoolCluster();
  [one, two] = cluster.nodes;
  for (const node of cluster.nodes) cluster.register(node);
  agents = await Promise.all(cluster.nodes.map((node) => node.start(...FLAGS)));
});
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.stop()));
  await cluster.api.stop();
  removeAll();
});

/** The runtime can make pods. */
const ready = ({ dataDir }: PoolNode) =>
  expect.poll(() => existsSync(join(dataDir, '..', 'net.d', '10-nodeplane.conflist'))).toBe(true);
const ofFamily = (node: PoolNode, version: 4 | 6) =>
  cluster.blocksOf(node).filter((cidr) => cidr.includes(':') === (version === 6));
const routeOn = (node: PoolNode, cidr: string) =>
  node.node.namespace.run('ip', cidr.includes(':') ? '-6' : '-4', 'route', 'show', cidr);
const blockOf = (node: PoolNode, address: string) =>
  cluster.blocksOf(node).find((cidr) => spanContains(spanOfCidr(parseCidr(cidr)), parseIp(address)));

async function reach(from: Host, to: Host): Promise<void> {
  for (const family of ['IPv4', 'IPv6'] as const) {
    await expect
      .poll(async () => {
        const outcome = await from.connect({ ip: to.ip(family), port: PORT }, { timeoutMs: 1000 });
        return outcome.kind === 'answered' ? outcome.by : outcome.kind;
      })
      .toBe(to.name);
  }
}

it('pods have addresses of their node’s blocks, and reach each other', async () => {
  for (const node of cluster.nodes) await ready(node);
  pods = [await one.addPod('pod-a'), await two.addPod('pod-b')];
  for (const pod of pods) await pod.serve({ port: PORT });
  for (const [node, pod] of [
    [one, pods[0]],
    [two, pods[1]],
  ] as const) {
    expect(
      cluster
        .blocksOf(node)
        .map((cidr) => cidr.includes(':'))
        .sort(),
    ).toEqual([false, true]);
    for (const address of pod.ips) expect(blockOf(node, address)).toBeDefined();
  }
  await reach(pods[0], pods[1]);
  await reach(pods[1], pods[0]);
});

it('a second block is taken when the first is used to 80 %, and routed within a second; its pods are reached', async () => {
  const [first] = ofFamily(one, 4);
  while (filled.length < 8) filled.push(await one.fill());
  expect(ofFamily(one, 4)).toEqual([first]);
  filled.push(await one.fill());
  const began = performance.now();
  await expect.poll(() => ofFamily(one, 4).length, { interval: 5 }).toBe(2);
  const second = ofFamily(one, 4).find((cidr) => cidr !== first)!;
  await expect.poll(() => routeOn(two, second), { interval: 5 }).toContain('proto 78');
  expect(performance.now() - began).toBeLessThan(patient(1000) * 5);
  while (filled.length < 12) filled.push(await one.fill());
  const late = await one.addPod('pod-c');
  expect(blockOf(one, late.ip())).toBe(second);
  await late.serve({ port: PORT });
  await reach(pods[1], late);
  await reach(late, pods[0]);
  filled.push(late.namespace);
});

it('an agent that is killed and started again keeps the blocks, and pods their connections', async () => {
  const had = cluster.blocksOf(one);
  const held = await pods[1].hold({ ip: pods[0].ip(), port: PORT });
  await agents[0]!.kill();
  agents[0] = await one.start(...FLAGS);
  await ready(one);
  await expect.poll(async () => (await one.call('STATUS', filled[0]!)).status).toBe(0);
  expect(cluster.blocksOf(one)).toEqual(had);
  expect(await held.echo()).toMatchObject({ kind: 'answered' });
  await held.close();
  const metrics = await agents[0]!.metrics();
  expect(metrics).toContain('nodeplane_pod_ranges{ip_family="IPv4",state="open"} 2');
  expect(metrics).toContain('nodeplane_pod_addresses{ip_family="IPv4",state="used"} 14');
});

it('a block whose last pod is gone is given back, with its gateway; the other node may have it', {
  timeout: patient(240_000),
}, async () => {
  const before = cluster.blocksOf(one);
  for (const pod of filled.splice(0)) expect((await one.call('DEL', pod)).status).toBe(0);
  await expect.poll(() => cluster.blocksOf(one).length, { timeout: patient(180_000) }).toBe(2);
  const gone = before.filter((cidr) => !cluster.blocksOf(one).includes(cidr));
  for (const cidr of gone) {
    const range = spanOfCidr(parseCidr(cidr));
    const gateway = formatCidr({
      address: ipFromValue(range.family, range.first + 1n),
      prefixLength: parseCidr(cidr).prefixLength,
    });
    await expect.poll(() => one.node.namespace.run('ip', '-o', 'address')).not.toContain(` ${gateway} `);
    await expect.poll(() => routeOn(two, cidr)).toBe('');
  }
  expect(gone).not.toHaveLength(0);
  await reach(pods[1], pods[0]);
});
