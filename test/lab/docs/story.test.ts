import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { enterNetns } from '../../../src/sys/index.ts';
import { apiNode, apiService, apiSlice, FakeApiServer } from '../../fakes/api-server/index.ts';
import { startKubeProxy } from '../kube-proxy-1.36.2.ts';
import { type Agent, createLab, type LabNode, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';

const LONG_MS = patient(300_000);
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
    apiService('shop/web'),
    apiSlice('shop/web', ['10.244.1.7', '10.244.2.9']),
  );
});
afterAll(async () => {
  await agent?.stop();
  await api.stop();
  removeAll();
});

for (const format of ['text', 'json'])
it(
  'tells a life',
  async () => {
    agent = await node.startAgent({
      log: format,
      flags: ['--kubeconfig', kubeconfig, '--proxy-mode', 'nftables', '--logging-format', format],
    });
    const said = (words: RegExp) => expect.poll(() => readFileSync(agent!.logFile, 'utf8')).toMatch(words);
    await delay(3000);
    const spec = (ip: string, more = {}) => ({ spec: { clusterIP: ip, clusterIPs: [ip], ...more } });
    api.apply(apiService('shop/cart', spec('10.96.0.20')), apiSlice('shop/cart', ['10.244.1.8']));
    await delay(2000);
    api.apply(apiService('shop/mail', spec('10.96.0.30', { externalIPs: ['169.254.169.254'] })));
    await delay(2000);
    api.apply(apiService('shop/worse', spec('10.96.0.40', { ports: [{ name: 'http', port: 'eighty' }] })));
    await delay(2000);
    node.namespace.run('nft', 'flush', 'chain', 'ip', 'nodeplane', 'services');
    await delay(2000);
    await api.stop();
    await delay(6000);
    await api.start();
    await delay(6000);
    await delay(format === 'text' ? 33_000 : 0);
    await agent.stop();
    console.log(readFileSync(agent.logFile, 'utf8'));
    for (const name of ['cart', 'mail', 'worse']) api.delete('Service', `shop/${name}`);
    void said;
  },
  LONG_MS,
);

it('tells of takeover', async () => {
  node.namespace.run('nft', 'delete', 'table', 'ip', 'nodeplane');
  node.namespace.run('nft', 'delete', 'table', 'ip6', 'nodeplane');
  await startKubeProxy({ namespace: node.namespace, addresses: {} }, 'iptables-nft');
  agent = await node.startAgent({
    log: 'over',
    flags: ['--kubeconfig', kubeconfig, '--proxy-mode', 'nftables', '--logging-format', 'text'],
  });
  await delay(8000);
  const second = await node.startAgent({
    log: 'second', until: 'started',
    flags: ['--kubeconfig', kubeconfig, '--proxy-mode', 'nftables', '--logging-format', 'text'],
  });
  await delay(4000);
  await agent.stop();
  await delay(4000);
  agent = second;
  await agent.stop();
  console.log(readFileSync(join(lab.folder, 'over.log'), 'utf8'));
  console.log(readFileSync(agent.logFile, 'utf8'));
}, LONG_MS);

it.each([['--kubeconfig', '/nowhere'], ['--kubeconfig', kubeconfig, '--proxy-mode', 'ipvs'], ['--kubeconfig', kubeconfig, '--proxy-mode', 'ipsv'], ['--manifests', '/nowhere']])(
  'tells of refused %s %s %s %s',
  async (...flags) => {
    const one = await node.startAgent({ log: `refused${flags.join('').replaceAll('/', '')}`, until: 'started', flags: [...flags, '--logging-format', 'text'] });
    const status = await one.ended;
    console.log(status, readFileSync(one.logFile, 'utf8'));
  },
  LONG_MS,
);
