import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { type Agent, createLab, type Host, type LabNode, removeAll } from '../lab.ts';

const METRICS = '127.0.0.1:10249';

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const client: Host = lab.addClient('client');
let agent: Agent;

beforeAll(async () => {
  const manifests = join(lab.folder, 'manifests');
  mkdirSync(manifests);
  writeFileSync(join(manifests, 'node.yaml'), 'apiVersion: v1\nkind: Node\nmetadata: { name: node-1 }\n');
  const flags = ['--logging-format=text', '--profiling', '--metrics-bind-address=0.0.0.0'];
  flags.push('--config-sync-period=7m', '--boot-id-file=/x', '--version=v1.36.2-acme');
  agent = await node.startAgent({ manifests, flags });
});
afterAll(async () => {
  await agent.stop();
  removeAll();
});

const get = async (path: string) => (await node.httpGet(`http://${METRICS}${path}`, { timeoutMs: 10_000 })).body;

it('logs lines for people, and what has no effect once', () => {
  const lines = readFileSync(agent.logFile, 'utf8').trimEnd().split('\n');
  for (const line of lines) expect(line).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO |WARN |ERROR) \S/);
  expect(lines[0]).toMatch(/ INFO {2}nodeplane agent starts version=\S+ node=node-1 mode=iptables manifests=\S+$/);
  expect(lines.filter((line) => line.includes('has no effect')).map((line) => line.slice(25))).toEqual([
    'WARN  configSyncPeriod (--config-sync-period) has no effect: every list is compared with what is known, and the rules with the kernel each sync period',
    'WARN  Flag --boot-id-file has no effect: kube-proxy does nothing with it either',
  ]);
});

it('shows its flags', async () => {
  const flags = (await get('/flagz')).split('\n');
  expect(flags).toContain('profiling=true');
  expect(flags).toContain('config-sync-period=7m0s');
  expect(flags).toContain('proxy-mode=');
  expect(await get('/statusz')).toContain('/debug/pprof/profile');
});

it('tells which build it is, under the version it was given', async () => {
  const [line] = (await get('/metrics')).match(/^kubernetes_build_info.*$/m)!;
  expect(line).toMatch(/git_version="v1\.36\.2-acme\+nodeplane\.\d+\.\d+\.\d+"/);
  // Empty where dist/ was built outside of git.
  expect(line).toMatch(/git_commit="([0-9a-f]{40})?"/);
  expect(line).toMatch(/build_date="(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?"/);
});

it('profiles itself for clients on the node, and for no others', async () => {
  const profile = JSON.parse(await get('/debug/pprof/profile?seconds=1'));
  expect(profile.nodes.length).toBeGreaterThan(1);
  // One in half a megabyte of what is allocated is looked at: the pages themselves bring some.
  const sampled = async () => {
    await get('/metrics');
    return JSON.parse(await get('/debug/pprof/heap')).head.children.length;
  };
  await expect.poll(sampled).toBeGreaterThan(0);
  for (const ip of node.ips) {
    const url = `http://${withPort(ip, 10249)}/debug/pprof/heap`;
    expect(await client.httpGet(url)).toMatchObject({ status: 403 });
    // By way of the node's own address, a client on the node is not told from others.
    expect(await node.httpGet(url)).toMatchObject({ status: 403 });
  }
});
