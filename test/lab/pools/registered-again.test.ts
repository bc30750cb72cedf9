import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Host } from '../host.ts';
import { type Agent, removeAll } from '../lab.ts';
import { createPoolCluster, type PoolCluster, type PoolNode } from './shared-pool.ts';

// --pod-cidrs-from=node: a Node that is deleted and registered again with other podCIDRs, while its pods live.

const OLD = ['10.78.1.0/24', 'fd00:78:1::/64'];
const NEW = ['10.78.9.0/24', 'fd00:78:9::/64'];
const ELSEWHERE = ['10.78.2.0/24', 'fd00:78:2::/64'];
const FLAGS = ['--routes', 'host-gw', '--cluster-cidr', '10.78.0.0/16,fd00:78::/32'];
const PORT = 8080;

let cluster: PoolCluster;
let one: PoolNode;
let two: PoolNode;
let agent: Agent;
let agentOfTwo: Agent;
let old: Host;
let far: Host;

beforeAll(async () => {
  cluster = await createPoolCluster();
  [one, two] = cluster.nodes;
  cluster.register(one);
  cluster.register(two, ELSEWHERE);
  agent = await one.start(...FLAGS);
  agentOfTwo = await two.start(...FLAGS);
});
afterAll(async () => {
  await Promise.all([agent, agentOfTwo].map((each) => each.stop()));
  await cluster.api.stop();
  removeAll();
});

const said = () => JSON.stringify(agent.logs());
const routes = () => one.node.namespace.run('ip', 'route', 'show', 'type', 'unreachable');
/** What leads from the other node to a range. */
const wayTo = (range: string) =>
  two.node.namespace.run('ip', '-N', range.includes(':') ? '-6' : '-4', 'route', 'show', range, 'proto', '78');
const addresses = () => one.node.namespace.run('ip', '-o', 'address', 'show');

it('waits for the podCIDRs of its Node, and says so in log, metric and STATUS', async () => {
  await expect.poll(said).toContain('Node \\"node-1\\" has no podCIDRs: kube-controller-manager gives them');
  expect(await agent.metrics()).toContain('nodeplane_pod_ranges{ip_family="IPv4",state="open"} 0');
  const { json } = await one.call('STATUS', one.node.namespace);
  expect(json).toMatchObject({ code: 50, details: expect.stringContaining('has no podCIDRs') });
  cluster.register(one, OLD);
  await expect.poll(() => existsSync(join(one.dataDir, '..', 'net.d', '10-nodeplane.conflist'))).toBe(true);
  old = await one.addPod('old');
  expect(old.ip()).toMatch(/^10\.78\.1\./);
  await old.serve({ port: PORT });
});

it('gives new pods the new range, and keeps the old one, also over a restart of the agent', async () => {
  cluster.api.delete('Node', 'node-1');
  cluster.register(one, NEW);
  await expect.poll(said).toContain('"closed":["10.78.1.0/24","fd00:78:1::/64"]');
  await agent.kill();
  agent = await one.start(...FLAGS);
  await expect.poll(async () => (await one.call('STATUS', one.node.namespace)).status).toBe(0);
  const young = await one.addPod('young');
  expect(young.ip()).toMatch(/^10\.78\.9\./);
  for (const range of ['10.78.1.0/24', '10.78.9.0/24']) await expect.poll(routes).toContain(range);
  for (const family of ['IPv4', 'IPv6'] as const) {
    const outcome = await young.connect({ ip: old.ip(family), port: PORT });
    expect(outcome).toMatchObject({ kind: 'answered', by: 'old' });
  }
});

it('is reached by pods of other nodes at both ranges', async () => {
  await expect.poll(async () => (await two.call('STATUS', two.node.namespace)).status).toBe(0);
  far = await two.addPod('far');
  for (const range of [...OLD, ...NEW]) await expect.poll(() => wayTo(range)).toContain('via');
  for (const family of ['IPv4', 'IPv6'] as const) {
    const outcome = await far.connect({ ip: old.ip(family), port: PORT });
    expect(outcome).toMatchObject({ kind: 'answered', by: 'old', source: far.ip(family) });
  }
});

it('gives the old range back when its last pod is gone', async () => {
  expect((await one.call('DEL', old.namespace)).status).toBe(0);
  await expect.poll(routes).not.toContain('10.78.1.0/24');
  expect(routes()).toContain('10.78.9.0/24');
  for (const range of OLD) await expect.poll(() => wayTo(range)).toBe('');
  for (const range of NEW) expect(wayTo(range)).toContain('via');
  for (const gateway of ['10.78.1.1/24', 'fd00:78:1::1/64']) await expect.poll(addresses).not.toContain(gateway);
  expect(addresses()).toContain('10.78.9.1/24');
  expect(await agent.metrics()).toContain('nodeplane_pod_ranges{ip_family="IPv4",state="closed"} 0');
});
