import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { enterNetns } from '../../../src/sys/index.ts';
import { apiNode, apiService, apiSlice, FakeApiServer } from '../../fakes/api-server/index.ts';
import { startKubeProxy } from '../kube-proxy-1.36.2.ts';
import { type Agent, type AgentOptions, createLab, type LabNode, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { chaptersOf, masked } from './story.ts';

// The log of an agent's life is as docs/operations.md shows it, line by line; what differs from run to run is masked in both.
// After a wanted change: STORY=1 prints what the agent says.

const LONG_MS = patient(300_000);
const DOCUMENTED = chaptersOf(readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8'));
const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const kubeconfig = join(lab.folder, 'kubeconfig');
let api: FakeApiServer;
let agent: Agent | undefined;

beforeAll(async () => {
  enterNetns(node.namespace.path);
  api = new FakeApiServer();
  await api.start();
  api.writeKubeconfig(kubeconfig);
  api.apply(
    { ...apiNode('node-1', node.ip()), spec: { podCIDR: node.podCidrs[0], podCIDRs: node.podCidrs } },
    apiSlice('shop/web', ['10.244.1.7', '10.244.2.9']),
    apiSlice('shop/cart', ['10.244.1.8']),
    apiService('shop/web'),
  );
});
afterAll(async () => {
  await agent?.stop();
  await api.stop();
  removeAll();
});

const start = (options: AgentOptions = {}) => {
  const flags = [
    '--kubeconfig',
    kubeconfig,
    '--proxy-mode',
    'nftables',
    '--logging-format',
    'text',
    '--kube-api-qps',
    '50',
  ];
  return node.startAgent({ ...options, flags: [...flags, '--iptables-sync-period', '5s', ...(options.flags ?? [])] });
};
const textOf = ({ logFile }: Agent) => readFileSync(logFile, 'utf8');
/** Waits for words in the log, `times` times. */
const says = (one: Agent, words: string, times = 1) =>
  expect.poll(() => textOf(one).split(words).length - 1, { timeout: patient(60_000) }).toBeGreaterThanOrEqual(times);

function expectStory(chapter: string, log: string): void {
  if (process.env.STORY) console.log(`${chapter}\n${log}`);
  expect(masked(log)).toEqual(masked(DOCUMENTED.get(chapter) ?? 'not documented'));
}

it(
  'a life: first sync, a Service, two that are wrong and mended, others meddle, no API server, silence, the end',
  async () => {
    const service = (name: string, ip: string, more: object = {}) =>
      api.apply(apiService(name, { spec: { clusterIP: ip, clusterIPs: [ip], ...more } }));
    agent = await start();
    await says(agent, 'Synced', 2);
    service('shop/cart', '10.96.0.20');
    await says(agent, 'services=shop/cart');
    service('shop/mail', '10.96.0.30', { externalIPs: ['169.254.169.254'] });
    await says(agent, 'services=shop/mail');
    service('shop/mail', '10.96.0.30');
    await says(agent, 'is in order again');
    service('shop/search', '10.96.0.40', { ports: [{ name: 'http', port: 70_000 }] });
    await says(agent, 'cannot be read');
    api.delete('Service', 'shop/search');
    await says(agent, 'All objects are in order again');
    node.namespace.run('nft', 'flush', 'chain', 'ip', 'nodeplane', 'services');
    await says(agent, 'full=true', 3);
    await api.stop();
    await says(agent, 'The API server cannot be read');
    await delay(3000);
    await api.start();
    await says(agent, 'is heard again');
    // Longer than a sync period, in which nothing happens and nothing is said.
    await delay(patient(7000));
    expect(await agent.stop()).toBe(0);
    expectStory('A life', textOf(agent));
  },
  LONG_MS,
);

it(
  'a node with a kube-proxy’s rules, and a second agent',
  async () => {
    node.namespace.run('nft', 'delete', 'table', 'ip', 'nodeplane');
    node.namespace.run('nft', 'delete', 'table', 'ip6', 'nodeplane');
    await startKubeProxy({ namespace: node.namespace, addresses: {} }, 'iptables-nft');
    const first = await start({ log: 'first' });
    await says(first, 'are removed', 2);
    agent = await start({ log: 'second', until: 'started' });
    await says(agent, 'standing by');
    await says(agent, 'All objects are read');
    await first.stop();
    await says(agent, 'Synced', 2);
    await agent.stop();
    expectStory('Where a kube-proxy was', textOf(first));
    expectStory('The second agent', textOf(agent));
  },
  LONG_MS,
);

it(
  'a start that is refused',
  async () => {
    agent = await start({ log: 'refused', until: 'started', flags: ['--kubeconfig', '/etc/kubernetes/proxy.conf'] });
    expect(await agent.ended).toBe(1);
    expectStory('A start that is refused', textOf(agent));
  },
  LONG_MS,
);
