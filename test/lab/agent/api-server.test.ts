import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { enterNetns } from '../../../src/sys/index.ts';
import { SYSTEM_NODE_PROXIER } from '../../deploy/render.ts';
import { type ApiObject, apiNode, apiService, apiSlice, FakeApiServer } from '../../fakes/api-server/index.ts';
import { type Agent, createLab, type LabNode, type Pod, removeAll, tally } from '../lab.ts';
import { builtProgram } from '../programs.ts';

// dist/kube-proxy against an API server that speaks the real protocol, with the permissions of proxies and real traffic.

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const [web, spare, client] = ['web', 'spare', 'client'].map((name) => node.addPod(name)) as [Pod, Pod, Pod];
const SERVICE = { ip: '10.96.0.10', port: 80 };
/** How long the API server misbehaves; NODEPLANE_CHAOS_SECONDS=120 for a thorough run. */
const CHAOS_SECONDS = Number(process.env.NODEPLANE_CHAOS_SECONDS ?? 3);
const kubeconfig = join(lab.folder, 'kubeconfig');
const tokenFile = join(lab.folder, 'token');
const configFile = join(lab.folder, 'config.conf');
let api: FakeApiServer;
let agent: Agent | undefined;

function configText(clusterCidr = '10.244.0.0/16'): string {
  return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clusterCIDR: ${clusterCidr}
clientConnection: { kubeconfig: ${kubeconfig} }
iptables: { minSyncPeriod: 10ms }
`;
}

const slice = (...pods: Pod[]): ApiObject =>
  apiSlice(
    'demo/web',
    pods.map((pod) => pod.ip()),
  );
const start = async () => {
  agent = await node.startAgent({ program: 'kube-proxy', flags: ['--config', configFile] });
  return agent;
};
const whoAnswers = async () => {
  const outcome = await client.connect(SERVICE, { timeoutMs: 300 });
  return outcome.kind === 'answered' ? outcome.by : outcome.kind;
};

beforeAll(async () => {
  for (const pod of [web, spare]) await pod.serve({ port: 8080 });
  // From here on this thread lives in the node's namespace, and so does the API server it runs.
  enterNetns(node.namespace.path);
  api = new FakeApiServer();
  await api.start();
  api.misbehave.tokens = new Set(['secret']);
  api.misbehave.rules = SYSTEM_NODE_PROXIER;
  writeFileSync(tokenFile, 'secret');
  api.writeKubeconfig(kubeconfig, { tokenFile });
  writeFileSync(configFile, configText());
  api.apply(apiNode('node-1', node.ip()), apiService('demo/web'), slice(web));
});
afterEach(async () => {
  Object.assign(api.misbehave, { cutWatchesAfterMs: undefined, refuseWatchVersions: undefined, stallAnswers: false });
  await agent?.stop();
  agent = undefined;
});
afterAll(async () => {
  await api.stop();
  removeAll();
});

it('follows the objects of the API server with no more permissions than a cluster gives proxies', async () => {
  await start();
  expect(await whoAnswers()).toBe('web');
  api.apply(slice(spare));
  await expect.poll(whoAnswers).toBe('spare');
  api.delete('EndpointSlice', 'demo/web-a');
  await expect.poll(whoAnswers).toBe('refused');
  api.apply(slice(web, spare));
  await expect.poll(whoAnswers).toMatch(/^web|spare$/);
  expect(agent!.logs().filter(({ level }) => level === 'error')).toEqual([]);
});

it('follows them through the proxy that a kubeconfig names', async () => {
  const led: string[] = [];
  const proxy = createServer().on('connect', (request, socket) => {
    led.push(request.url!);
    const { hostname, port } = new URL(`tcp://${request.url}`);
    const onward = connect(Number(port), hostname, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
    pipeline(socket, onward, socket, () => onward.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const throughProxy = join(lab.folder, 'through-proxy');
  const config = parse(readFileSync(kubeconfig, 'utf8'));
  config.clusters[0].cluster['proxy-url'] = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  writeFileSync(throughProxy, stringify(config));
  api.apply(slice(web));
  agent = await node.startAgent({ program: 'kube-proxy', flags: ['--kubeconfig', throughProxy] });
  expect(await whoAnswers()).toBe('web');
  api.apply(slice(spare));
  await expect.poll(whoAnswers).toBe('spare');
  expect(new Set(led)).toEqual(new Set([new URL(api.url).host]));
  proxy.close();
});

it('a credential plugin that hangs is told by name, and ends with the agent, which SIGTERM ends at once', async () => {
  const plugin = join(lab.folder, 'plugin');
  writeFileSync(plugin, `#!/bin/sh\necho $$ > ${plugin}.pid\nexec sleep 1000\n`);
  chmodSync(plugin, 0o755);
  const hanging = join(lab.folder, 'hanging');
  const config = parse(readFileSync(kubeconfig, 'utf8'));
  config.users[0].user = { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: plugin } };
  writeFileSync(hanging, stringify(config));
  agent = await node.startAgent({ program: 'kube-proxy', until: 'live', flags: ['--kubeconfig', hanging] });
  const told = () => agent!.logs().filter(({ command }) => command === plugin);
  await expect.poll(told).toMatchObject([{ level: 'warn', msg: expect.stringContaining('has not answered yet') }]);
  const pid = readFileSync(`${plugin}.pid`, 'utf8').trim();
  expect(await agent.stop()).toBe(0);
  await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false);
});

it(
  'loses no rule and no connection while the API server is killed, watches are cut and versions expire',
  async () => {
    api.apply(slice(web, spare));
    const { metrics } = await start();
    const load = await client.startLoad(SERVICE, { perSecond: 100 });
    const refused = () => new Set(node.iptablesSave('nft').match(/noise\/service-\d+/g));
    const existing = new Set<string>();
    api.misbehave.cutWatchesAfterMs = 100;
    api.misbehave.refuseWatchVersions = 'event';
    const end = Date.now() + CHAOS_SECONDS * 1000;
    for (let round = 0; Date.now() < end; round++) {
      api.apply(slice(...(round % 2 === 0 ? [web] : [web, spare])));
      if (round < 50) {
        const clusterIP = `10.96.9.${round + 1}`;
        api.apply(apiService(`noise/service-${round}`, { spec: { clusterIP, clusterIPs: [clusterIP] } }));
      }
      if (round % 3 === 0) api.compact();
      if (round % 5 === 4) {
        await api.stop();
        await delay(100);
        await api.start();
      }
      await delay(150);
      // What was in the kernel once stays there: none of these Services is ever deleted.
      const present = refused();
      for (const name of existing) expect(present).toContain(name);
      for (const name of present) existing.add(name);
    }
    Object.assign(api.misbehave, { cutWatchesAfterMs: undefined, refuseWatchVersions: undefined });
    api.apply(slice(spare));
    await expect.poll(whoAnswers, { timeout: 20_000 }).toBe('spare');
    const { failures, answered } = await load.stop();
    expect(failures).toEqual([]);
    expect(answered).toBeGreaterThan(100);
    expect(await metrics()).toMatch(/sync_proxy_rules_iptables_total\{ip_family="IPv4",table="nat"\} \d+/);
    await expect
      .poll(() => [...refused()].sort())
      .toEqual(
        api
          .objects('Service')
          .flatMap(({ metadata }) => (metadata.namespace === 'noise' ? [`noise/${metadata.name}`] : []))
          .sort(),
      );
  },
  (CHAOS_SECONDS + 60) * 1000,
);

it('writes nothing before it knows all Services and endpoints', async () => {
  api.apply(slice(web));
  await start();
  expect(await whoAnswers()).toBe('web');
  await agent!.kill();
  const before = node.iptablesSave('nft');
  api.misbehave.stallAnswers = true;
  const starting = start();
  await delay(1000);
  expect(node.iptablesSave('nft').replace(/^#.*\n/gm, '')).toBe(before.replace(/^#.*\n/gm, ''));
  expect(await whoAnswers()).toBe('web');
  api.misbehave.stallAnswers = false;
  await api.stop();
  await api.start();
  await starting;
  expect(tally(await client.connectMany(SERVICE, 10)).answers).toEqual({ web: 10 });
});

it('ends with status 1 when its configuration file changes, and leaves the rules', async () => {
  api.apply(slice(web));
  const { ended } = await start();
  writeFileSync(configFile, configText('10.0.0.0/8'));
  expect(await ended).toBe(1);
  expect(await whoAnswers()).toBe('web');
});

it('ends with an Event on the Node when a port is taken and that is fatal', async () => {
  // The API server itself is who has the port.
  writeFileSync(configFile, `${configText()}bindAddressHardFail: true\nmetricsBindAddress: ${new URL(api.url).host}\n`);
  await expect(start()).rejects.toThrow(/status 1/);
  const reported = api.objects('Event').find(({ reason }) => reason === 'FailedToStartMetricServer');
  expect(reported).toMatchObject({ type: 'Warning', regarding: { kind: 'Node', name: 'node-1' } });
  expect(reported?.note).toContain('cannot listen');
  writeFileSync(configFile, configText());
});

it('takes kube-proxy’s actions: --version, --write-config-to, --init-only, --cleanup', () => {
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(
      'ip',
      ['netns', 'exec', node.namespace.name, builtProgram('kube-proxy'), ...args],
      { encoding: 'utf8' },
    );
    return { status, stdout, stderr };
  };
  expect(run('--version')).toEqual({
    status: 0,
    stdout: expect.stringMatching(/^Kubernetes v1\.36\.\d+\n$/),
    stderr: '',
  });
  const written = join(lab.folder, 'written.conf');
  expect(run('--config', configFile, '--write-config-to', written).status).toBe(0);
  expect(parseAllDocuments(readFileSync(written, 'utf8'))[0]!.toJS()).toMatchObject({
    mode: 'iptables',
    iptables: { minSyncPeriod: '10ms' },
  });
  expect(run('--config', configFile, '--init-only').status).toBe(0);
  expect(run('--config', configFile, 'word')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('does not take any arguments, got ["word"]'),
  });
  expect(run('--cleanup').status).toBe(0);
  // KUBE-FIREWALL is the kubelet's too: kube-proxy leaves it as well.
  expect(node.iptablesSave('nft')).not.toMatch(/KUBE-(?!FIREWALL)/);
});
