import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import {
  formatCidr,
  formatIp,
  ipFromValue,
  parseCidr,
  parseIp,
  spanContains,
  spanOfCidr,
} from '../../../src/core/index.ts';
import type { Host } from '../host.ts';
import { type Agent, removeAll } from '../lab.ts';
import type { TestNamespace } from '../namespace.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { createPoolCluster, type PoolCluster, type PoolNode } from './shared-pool.ts';

// Two nodes share pools by the real agent, and pods of theirs talk. Blocks of 16 addresses are full with 13 pods.

const FLAGS = ['--routes', 'auto', '--pod-cidrs-from', 'pool', '--pool-cidrs', '10.77.0.0/25,fd00:77::/120'];
FLAGS.push('--pool-block-size', '28', '--pool-block-size-ipv6', '124');
const PORT = 8080;

// Programs are started here, each of which takes seconds on a busy machine.
vi.setConfig({ testTimeout: patient(240_000) });

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

/** The IPv4 address of a pod's interface. */
const addressIn = (pod: TestNamespace) =>
  / inet ([\d.]+)/.exec(pod.run('ip', '-o', '-4', 'address', 'show', 'eth0'))![1]!;

/** `nodeplane ipam` on a node. The API server is in this process: waiting for it would be waiting for us. */
function runIpam({ node, ipamFlags }: PoolNode, ...words: string[]): Promise<{ status: number; stdout: string }> {
  const args = ['ipam', ...words, '--cni', '--hostname-override', node.name, ...ipamFlags, ...FLAGS];
  return new Promise((resolve) => {
    execFile(
      'ip',
      ['netns', 'exec', node.namespace.name, builtProgram('nodeplane'), ...args],
      (error, stdout, stderr) => {
        resolve({ status: error ? Number(error.code) : 0, stdout: stdout + stderr });
      },
    );
  });
}

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

it('nodeplane ipam shows what there is, and check finds nothing', async () => {
  const { status, stdout } = await runIpam(one, '--json');
  expect([status, stdout]).toEqual([0, expect.stringContaining('"node": "node-1"')]);
  const { pools, ranges } = JSON.parse(stdout);
  expect(pools[0]).toEqual({ cidr: '10.77.0.0/25', blockSize: 28, blocks: 8, free: 5, nodes: 2 });
  const byUse = ranges
    .filter(({ cidr }: { cidr: string }) => !cidr.includes(':'))
    .map(({ used, free }: Used) => [used, free]);
  expect(byUse.sort()).toEqual([
    [1, 12],
    [13, 0],
  ]);
  expect((await runIpam(one)).stdout).toMatch(/^10\.77\.0\.0\/25 +\/28 +8 +5 +2$/m);
  expect(await runIpam(one, 'check')).toEqual({ status: 0, stdout: 'All addresses are in order\n' });
});

it('nodeplane ipam check finds what is lost: reserved for nobody, used without a reservation, reserved twice', async () => {
  const network = join(one.dataDir, 'nodeplane');
  const [block] = ofFamily(one, 4);
  const free = formatIp(ipFromValue('IPv4', spanOfCidr(parseCidr(block!)).last));
  writeFileSync(join(network, free), 'nobody\r\neth0');
  mkdirSync(join(one.dataDir, 'other'));
  writeFileSync(join(one.dataDir, 'other', pods[0].ip()), 'other\r\neth0');
  const lost = addressIn(filled[0]!);
  renameSync(join(network, lost), join(one.dataDir, 'kept'));
  const { status, stdout } = await runIpam(one, 'check', '--json');
  renameSync(join(one.dataDir, 'kept'), join(network, lost));
  for (const path of [join(network, free), join(one.dataDir, 'other')]) rmSync(path, { recursive: true });
  expect([status, stdout]).toEqual([2, expect.stringContaining('"findings"')]);
  const found = JSON.parse(stdout).findings.map(({ kind, what }: { kind: string; what: string }) => `${kind} ${what}`);
  expect(found.sort()).toEqual([`unused ${free}`, `reservedTwice ${pods[0].ip()}`, `unreserved ${lost}`].sort());
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

type Used = { readonly used: number; readonly free: number };
