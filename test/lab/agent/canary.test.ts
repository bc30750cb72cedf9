import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { enterNetns } from '../../../src/sys/index.ts';
import { apiNode, apiService, apiSlice, FakeApiServer } from '../../fakes/api-server/index.ts';
import { type Agent, createLab, type LabNode, type Pod, removeAll } from '../lab.ts';
import { PATIENCE, patient } from '../patience.ts';

// One node tries another mode, told by an annotation of its Node, and a change of the file that waits for its turn.

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const [web, client] = ['web', 'client'].map((name) => node.addPod(name)) as [Pod, Pod];
const SERVICE = { ip: '10.96.0.10', port: 80 };
const kubeconfig = join(lab.folder, 'kubeconfig');
const configFile = join(lab.folder, 'config.conf');
let api: FakeApiServer;
let agent: Agent;

const configText = (more = '') => `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: { kubeconfig: ${kubeconfig} }
nodeplane: { configChangeSpread: 1s }
${more}`;

function annotate(mode?: string): void {
  const { metadata, ...rest } = apiNode('node-1', node.ip());
  const annotations = mode === undefined ? {} : { 'nodeplane.io/proxy-mode': mode };
  api.apply({ ...rest, metadata: { ...metadata, annotations } });
}
const page = async (path: string) => (await node.httpGet(`http://127.0.0.1:10249${path}`)).body;
const mode = () => page('/proxyMode').catch(() => 'none');
const hash = async () => /nodeplane_config_hash_info\{hash="(\w+)"\} 1/.exec(await page('/metrics'))?.[1];
const synced = () => agent.logs().filter(({ msg, full }) => msg === 'Synced' && full === true).length;

beforeAll(async () => {
  await web.serve({ port: 8080 });
  enterNetns(node.namespace.path);
  api = new FakeApiServer();
  await api.start();
  api.writeKubeconfig(kubeconfig);
  annotate();
  api.apply(apiService('demo/web'), apiSlice('demo/web', [web.ip()]));
  writeFileSync(configFile, configText());
  agent = await node.startAgent({ flags: ['--config', configFile] });
});
afterAll(async () => {
  await agent.stop();
  await api.stop();
  removeAll();
});

it('follows the annotation and its end, with no connection lost, and without a new process', async () => {
  const load = await client.startLoad(SERVICE, { perSecond: PATIENCE === 1 ? 100 : 10 });
  const configured = await hash();
  for (const [said, wanted] of [
    ['nftables', 'nftables'],
    [undefined, 'iptables'],
  ] as const) {
    const before = synced();
    annotate(said);
    await expect.poll(mode, { timeout: patient(30_000) }).toBe(wanted);
    await expect.poll(synced, { timeout: patient(30_000) }).toBeGreaterThan(before);
    expect((await hash()) === configured).toBe(wanted === 'iptables');
  }
  await expect
    .poll(() => node.namespace.run('nft', 'list', 'tables'), { timeout: patient(20_000) })
    .not.toMatch(/nodeplane$/m);
  expect((await load.stop()).failures).toEqual([]);
});

it('tells of a mode that there is none of, by log and Event, and stays as it is', async () => {
  annotate('magic');
  const told = () => api.objects('Event').filter(({ reason }) => reason === 'InvalidAnnotation');
  await expect
    .poll(told, { timeout: patient(20_000) })
    .toMatchObject([{ type: 'Warning', regarding: { name: 'node-1' } }]);
  expect(told()[0]!.note).toContain('mode iptables stays');
  expect(await mode()).toBe('iptables');
});

it('says when it will end for a changed file, and does', async () => {
  const saying = (text: string) => agent.logs().filter(({ msg }) => String(msg).includes(text)).length;
  writeFileSync(configFile, configText('clusterCIDR: 10.0.0.0/8\n'));
  await expect.poll(() => saying('ending soon'), { timeout: patient(20_000), interval: 10 }).toBe(1);
  expect(await agent.ended).toBe(1);
});
