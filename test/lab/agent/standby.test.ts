import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { enterNetns } from '../../../src/sys/index.ts';
import { apiNode, apiService, apiSlice, FakeApiServer } from '../../fakes/api-server/index.ts';
import type { AgentOptions } from '../agent-process.ts';
import { type Agent, createLab, type LabNode, type Pod, removeAll } from '../lab.ts';
import { PATIENCE, patient } from '../patience.ts';

// Two agents on one node, told by one API server: the second stands by, and takes over from one that ends in any way.

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const [web, spare, client] = ['web', 'spare', 'client'].map((name) => node.addPod(name)) as [Pod, Pod, Pod];
const SERVICE = { ip: '10.96.0.10', port: 80 };
const OWN_HEALTH = 'http://127.0.0.1:20256';
const kubeconfig = join(lab.folder, 'kubeconfig');
let api: FakeApiServer;
let agents = 0;

const slice = (...pods: Pod[]) =>
  apiSlice(
    'demo/web',
    pods.map((pod) => pod.ip()),
  );
const whoAnswers = async () => {
  const outcome = await client.connect(SERVICE, { timeoutMs: 300 });
  return outcome.kind === 'answered' ? outcome.by : outcome.kind;
};
const lines = (agent: Agent, text: string) => agent.logs().filter(({ msg }) => String(msg).includes(text));
/** Waits for a line in the log. */
const says = (agent: Agent, text: string) =>
  expect.poll(() => lines(agent, text).length, { timeout: patient(30_000), interval: 10 }).toBeGreaterThan(0);
/** What is in the kernel, without counters and comments on time. */
const rules = () =>
  node
    .iptablesSave('nft')
    .replace(/^#.*\n/gm, '')
    .replace(/\[\d+:\d+\]/g, '');

async function start(options: Partial<AgentOptions> = {}): Promise<Agent> {
  const { flags = [], ...rest } = options;
  const log = `agent-${++agents}`;
  const agent = await node.startAgent({ log, flags: ['--kubeconfig', kubeconfig, ...flags], ...rest });
  onTestFinished(() => agent.kill());
  return agent;
}

async function startStandby(options: Partial<AgentOptions> = {}): Promise<Agent> {
  const standby = await start({ until: 'started', ...options });
  await says(standby, 'standing by');
  return standby;
}

beforeAll(async () => {
  for (const pod of [web, spare]) await pod.serve({ port: 8080 });
  enterNetns(node.namespace.path);
  api = new FakeApiServer();
  await api.start();
  api.writeKubeconfig(kubeconfig);
  api.apply(apiNode('node-1', node.ip()), apiService('demo/web'), slice(web));
});
afterAll(async () => {
  await api.stop();
  removeAll();
});

it('writes nothing while it stands by, says so at ports of its own, and ends at SIGTERM like any agent', async () => {
  const first = await start();
  const before = rules();
  const standby = await startStandby({
    flags: ['--healthz-bind-address', '127.0.0.1:20256', '--metrics-bind-address', '127.0.0.1:20249', '--cni'],
  });
  const get = (path: string) => node.httpGet(`${OWN_HEALTH}${path}`);
  await expect.poll(async () => (await get('/livez').catch(() => undefined))?.status).toBe(200);
  expect(await get('/healthz')).toMatchObject({ status: 503 });
  const holder = new RegExp(`^\\[-\\]standby failed: process ${first.pid} \\(.*\\) works on this node`);
  expect(await get('/readyz')).toMatchObject({ status: 503, body: expect.stringMatching(holder) });
  expect((await node.httpGet('http://127.0.0.1:20249/metrics')).body).toContain('nodeplane_standby 1');
  expect((await node.httpGet('http://127.0.0.1:10256/readyz')).status).toBe(200);
  expect(await first.metrics()).toContain('nodeplane_standby 0');
  expect(rules()).toBe(before);
  expect(await standby.stop()).toBe(0);
  expect(lines(standby, 'Synced')).toEqual([]);
  expect(lines(standby, 'CNI')).toEqual([]);
  expect(standby.logs().filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
});

it.each(['stop', 'kill'] as const)(
  'takes over from an agent that ends by %s, with no connection lost of 200 a second',
  async (end) => {
    api.apply(slice(web, spare));
    const first = await start();
    await expect.poll(async () => new Set(await Promise.all(Array.from({ length: 8 }, whoAnswers)))).toContain('spare');
    const standby = await startStandby();
    await expect
      .poll(() => api.requests.filter(({ url }) => /endpointslices.*watch/.test(url)).length)
      .toBeGreaterThan(1);
    const load = await client.startLoad(SERVICE, { perSecond: PATIENCE === 1 ? 200 : 10 });
    await expect.poll(async () => (await load.report()).answered).toBeGreaterThan(20);
    const began = performance.now();
    await first[end]();
    const ended = performance.now();
    await says(standby, 'taking over');
    const taken = performance.now();
    await says(standby, 'Synced');
    const synced = performance.now();
    // A change from now on is the new agent's to make.
    api.apply(slice(spare));
    await expect.poll(whoAnswers, { timeout: patient(20_000), interval: 10 }).toBe('spare');
    console.log(
      `${end}: ended in ${Math.round(ended - began)} ms, taken over ${Math.round(taken - ended)} ms later, synced after ${Math.round(synced - ended)} ms`,
    );
    const { failures, answered } = await load.stop();
    expect(failures).toEqual([]);
    expect(answered).toBeGreaterThan(20);
    expect(await standby.metrics()).toContain('nodeplane_standby 0');
    await expect
      .poll(async () => (await node.httpGet('http://127.0.0.1:10256/readyz')).status, { timeout: patient(20_000) })
      .toBe(200);
    expect(standby.logs().filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
    expect(await standby.stop()).toBe(0);
  },
);

it('takes over although the API server is away, and keeps what is in the kernel until it knows better', async () => {
  api.apply(slice(web));
  const first = await start();
  expect(await whoAnswers()).toBe('web');
  const standby = await startStandby();
  await api.stop();
  await first.kill();
  await says(standby, 'taking over');
  expect(await whoAnswers()).toBe('web');
  await api.start();
  api.apply(slice(spare));
  await expect.poll(whoAnswers, { timeout: patient(60_000) }).toBe('spare');
  await standby.stop();
});

it('a kube-proxy of ours waits as well, and an agent without a lock directory does not', async () => {
  const first = await start({ program: 'kube-proxy' });
  const standby = await startStandby({ program: 'kube-proxy' });
  const other = await start({ until: 'started', flags: ['--agent-lock-dir='] });
  await says(other, 'Synced');
  expect(lines(standby, 'Synced')).toEqual([]);
  await other.stop();
  await first.stop();
  await says(standby, 'Synced');
  await standby.stop();
});
