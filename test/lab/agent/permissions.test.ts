import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { enterNetns } from '../../../src/sys/index.ts';
import {
  daemonSetOf,
  grantedBy,
  MODES,
  type Rendered,
  render,
  renderSwap,
  renderWith,
  SYSTEM_NODE_PROXIER,
} from '../../deploy/render.ts';
import { apiNode, apiService, apiSlice, FakeApiServer, type PolicyRule } from '../../fakes/api-server/index.ts';
import { type Agent, createLab, type Lab, type LabNode, type Pod, removeAll } from '../lab.ts';

// The agent as each overlay of deploy/ runs it, against an API server that refuses all that the overlay's roles do not grant: it has
// to do its work, ask for nothing else, and need everything it is granted. IPVS, which not every kernel has, asks for the same
// (test/deploy/manifests.test.ts).

const SERVICE = { ip: '10.96.0.10', port: 80 };
const BLOCK = { cidr: '10.244.0.0/26', pool: '10.244.0.0/16', node: 'node-1', nodeUID: 'earlier' };

let lab: Lab;
let node: LabNode;
let web: Pod;
let client: Pod;
let api: FakeApiServer;
let agent: Agent | undefined;
const path = (name: string) => join(lab.folder, name);

beforeAll(async () => {
  lab = createLab({ podRoutes: false });
  node = lab.addNode({ name: 'node-1' });
  [web, client] = [node.addPod('web'), node.addPod('client')];
  await web.serve({ port: 8080 });
  // From here on this thread lives in the node's namespace, and so does the API server it runs.
  enterNetns(node.namespace.path);
  api = new FakeApiServer();
  await api.start();
  // As before Kubernetes 1.34, where a watch brings what is there: both verbs are needed.
  api.misbehave.streamingLists = false;
});
afterEach(async () => {
  await agent?.stop();
  agent = undefined;
});
afterAll(async () => {
  await api.stop();
  removeAll();
});

/** Starts the agent with the command line and the files that were rendered. */
async function start(objects: readonly Rendered[]): Promise<Agent> {
  api.misbehave.rules = [...SYSTEM_NODE_PROXIER, ...grantedBy(objects)];
  api.requests.length = 0;
  const spec = { podCIDR: node.podCidrs[0], podCIDRs: node.podCidrs };
  const conditions = [{ type: 'NetworkUnavailable', status: 'True', reason: 'NoRouteCreated', message: '' }];
  const addresses = node.ips.map((address) => ({ type: 'InternalIP', address }));
  api.apply(
    { ...apiNode('node-1'), spec, status: { addresses, conditions } },
    apiService('demo/web'),
    apiSlice('demo/web', [web.ip()]),
  );
  const { data } = objects.find(({ kind }) => kind === 'ConfigMap')!;
  writeFileSync(path('config.conf'), data['config.conf'].replaceAll('/var/lib/kube-proxy', lab.folder));
  api.writeKubeconfig(path('kubeconfig.conf'));
  const [, ...command] = daemonSetOf(objects).spec!.template.spec!.containers[0]!.command!;
  const flags = command
    .filter((text) => text !== 'agent' && !text.startsWith('--hostname-override='))
    .map((text) => text.replace('/var/lib/kube-proxy', lab.folder).replace('/host/proc/sys', '/proc/sys'));
  if (flags.includes('--cni')) {
    for (const name of ['bin-dir', 'conf-dir', 'spool-dir', 'data-dir']) flags.push(`--cni-${name}=${path(name)}`);
    mkdirSync(path('run'), { recursive: true });
    flags.push(`--cni-socket=${path('run/cni.sock')}`);
  }
  const program = daemonSetOf(objects).spec!.template.spec!.containers[0]!.command![0]!.endsWith('kube-proxy')
    ? 'kube-proxy'
    : 'nodeplane';
  agent = await node.startAgent({ program, flags });
  return agent;
}

const answers = async () => {
  const outcome = await client.connect(SERVICE, { timeoutMs: 1000 });
  return outcome.kind === 'answered' ? outcome.by : outcome.kind;
};
const asked = () => new Set(api.requests.map(({ verb, resource, url }) => `${verb} ${resource}${statusOf(url)}`));
const statusOf = (url: string) => (/\/status(\?|$)/.test(url) ? '/status' : '');
const refused = () => api.requests.filter(({ status }) => status === 403).map(({ method, url }) => `${method} ${url}`);
const permissions = (rules: readonly PolicyRule[]) =>
  rules.flatMap(({ resources, verbs }) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)));
/** What was granted beyond the role of proxies, and not asked for so far. */
const unused = (objects: readonly Rendered[]) => permissions(grantedBy(objects)).filter((one) => !asked().has(one));

const LAB_MODES = MODES.filter((mode) => mode !== 'ipvs');
const SERVICES_ONLY = LAB_MODES.flatMap((mode) => [
  { name: `proxy/${mode}`, objects: render(`overlays/proxy/${mode}`) },
  { name: `swapped, ${mode}`, objects: renderSwap('overlays/swap', mode) },
]);

describe.each(SERVICES_ONLY)('$name', ({ objects }) => {
  it('serves Services with the role of proxies alone', async () => {
    const { logs } = await start(objects);
    await expect.poll(answers).toBe('web');
    await expect.poll(() => asked().has('create events')).toBe(true);
    expect(refused()).toEqual([]);
    expect(grantedBy(objects)).toEqual([]);
    expect(logs().filter(({ level }) => level === 'error')).toEqual([]);
  });
});

describe.each(LAB_MODES)('full/%s', (mode) => {
  const objects = render(`overlays/full/${mode}`);

  it('makes Services and routes, and writes its Node, with what it is granted and no more', async () => {
    const { logs } = await start(objects);
    await expect.poll(answers).toBe('web');
    await expect.poll(() => unused(objects)).toEqual([]);
    expect(refused()).toEqual([]);
    expect(logs().filter(({ level }) => level === 'error')).toEqual([]);
  });
});

describe('full with pools', () => {
  const objects = renderWith({ resources: ['overlays/full/nftables'], components: ['components/pools'] });

  it('claims, confirms and deletes blocks besides', async () => {
    // Given back, and not deleted yet when an agent before ended.
    const times = { claimedAt: '2026-01-01T00:00:00Z', renewedAt: '2026-01-01T00:00:00Z' };
    api.apply({
      apiVersion: 'nodeplane.io/v1alpha1',
      kind: 'PodCIDRBlock',
      metadata: { name: '10-244-0-0-26', labels: {} },
      spec: { ...BLOCK, ...times, holder: 'an earlier one', state: 'releasing' },
    });
    const { logs } = await start(objects);
    await expect.poll(() => unused(objects), { timeout: 30_000 }).toEqual([]);
    expect(refused()).toEqual([]);
    const blocks = () => api.objects('PodCIDRBlock').map(({ spec }) => (spec as { state: string }).state);
    await expect.poll(blocks).toEqual(['confirmed']);
    expect(logs().filter(({ level }) => level === 'error')).toEqual([]);
  });
});

it('what is not granted is refused: without the second role the Node is not written', async () => {
  const { logs } = await start(render('overlays/full/nftables').filter(({ kind }) => kind !== 'ClusterRole'));
  await expect.poll(refused).toContainEqual(expect.stringMatching(/^PATCH .*\/nodes\/node-1\/status/));
  await expect.poll(answers).toBe('web');
  // Told once the refusal has come back.
  await expect.poll(() => logs().filter(({ level }) => level === 'error')).not.toEqual([]);
});
