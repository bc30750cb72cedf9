import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { makeService, makeSlice } from '../fakes/service-objects.ts';
import { addRoute, createLab, type Host, type LabNode, type Pod, removeAll } from '../lab/lab.ts';
import { PATIENCE } from '../lab/patience.ts';
import { builtProgram } from '../lab/programs.ts';
import { manifestOf, nodeObject, saveManifest } from '../samples/manifests.ts';

// To nodeplane from a kube-proxy in mode ipvs and back, and from mode ipvs of ours to a kube-proxy in mode iptables: rules of one
// Service stand for it, which leads to another pod than ours.

const POLL = { timeout: 60_000 * PATIENCE, interval: 500 };
const VIP = '10.96.1.1';
const lab = createLab();
const node: LabNode = lab.addNode({ name: 'n1' });
const manifests = join(lab.folder, 'manifests');
let [web, theirs]: Pod[] = [];
let client: Host;

const run = (program: string, ...args: string[]) => node.namespace.run(program, ...args);
const nodeplane = (...args: string[]) => {
  const words = ['netns', 'exec', node.namespace.name, builtProgram('nodeplane'), ...args];
  const { status, stdout, stderr } = spawnSync('ip', words, { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
};
const iptables = (table: string, ...args: string[]) => run('iptables-nft', '-w', '-t', table, ...args);
const portals = ['-m', 'comment', '--comment', 'kubernetes service portals', '-j', 'KUBE-SERVICES'];

/** What a kube-proxy in mode ipvs makes of the Service (pkg/proxy/ipvs). */
function startKubeProxyIpvs(): void {
  run('ip', 'link', 'add', 'kube-ipvs0', 'type', 'dummy');
  run('ip', 'address', 'add', `${VIP}/32`, 'dev', 'kube-ipvs0');
  run('ipset', 'create', 'KUBE-CLUSTER-IP', 'hash:ip,port');
  run('ipset', 'add', 'KUBE-CLUSTER-IP', `${VIP},tcp:80`);
  run('sysctl', '-qw', 'net.ipv4.vs.conntrack=1');
  run('ipvsadm', '-A', '-t', `${VIP}:80`, '-s', 'rr');
  run('ipvsadm', '-a', '-t', `${VIP}:80`, '-r', `${theirs!.ip()}:8080`, '-m');
  iptables('nat', '-N', 'KUBE-SERVICES');
  iptables('nat', '-A', 'KUBE-SERVICES', '-m', 'set', '--match-set', 'KUBE-CLUSTER-IP', 'dst,dst', '-j', 'ACCEPT');
  iptables('nat', '-A', 'PREROUTING', ...portals);
}

function startKubeProxyIptables(): void {
  const service = ['-d', `${VIP}/32`, '-p', 'tcp', '--dport', '80'];
  // Its own name is there from mode ipvs, and is written anew.
  iptables('nat', '-F', 'KUBE-SERVICES');
  iptables('nat', '-A', 'KUBE-SERVICES', ...service, '-j', 'DNAT', '--to-destination', `${theirs!.ip()}:8080`);
  run('ip6tables-nft', '-w', '-t', 'nat', '-F', 'KUBE-SERVICES');
  run('ip6tables-nft', '-w', '-t', 'nat', '-A', 'KUBE-SERVICES', '-j', 'RETURN');
}

/** Of mode ipvs, in whosever hands. */
const traces = () => ({
  servers: run('ipvsadm', '-Sn').split('\n').filter(Boolean).length,
  sets: run('ipset', 'list', '-n').split('\n').filter(Boolean),
  hasDevice: run('ip', '-o', 'link').includes('kube-ipvs0'),
});
const NOTHING = { servers: 0, sets: [], hasDevice: false };

async function whoAnswers(): Promise<string> {
  const outcome = await client.connect({ ip: VIP, port: 80 }, { timeoutMs: 5000 });
  return outcome.kind === 'answered' ? outcome.by : outcome.kind;
}
const standing = () =>
  JSON.parse(nodeplane('migration', '-o', 'json', '--hostname-override', 'n1', '--manifests', manifests)).standing;

beforeAll(async () => {
  [web, theirs] = ['web', 'theirs'].map((name) => node.addPod(name));
  for (const pod of [web!, theirs!]) await pod.serve({ port: 8080 });
  client = lab.addClient('client');
  addRoute(client, '10.96.0.0/16', node);
  mkdirSync(manifests);
  const ports = [{ name: 'main', port: 80 }];
  const endpoint = { addresses: [web!.ip()], nodeName: 'n1' };
  saveManifest(
    manifests,
    'all.yaml',
    manifestOf(
      nodeObject(node),
      makeService('demo/web', { clusterIP: VIP, ports }),
      makeSlice('demo/web', [endpoint], { ports: [{ name: 'main', port: 8080 }] }),
    ),
  );
});
afterEach(() => nodeplane('cleanup'));
afterAll(removeAll);

it('from a kube-proxy in mode ipvs to mode nftables, and back', async () => {
  startKubeProxyIpvs();
  expect(await whoAnswers()).toBe('theirs');
  expect(standing()).toBe('not begun');
  const theirTraces = traces();
  const agent = await node.startAgent({ manifests, flags: ['--proxy-mode', 'nftables'] });
  await expect.poll(whoAnswers, POLL).toBe('web');
  // Connections through IPVS may finish first.
  await expect.poll(traces, POLL).toEqual(NOTHING);
  expect(standing()).toBe('nodeplane');
  await agent.stop();
  startKubeProxyIpvs();
  nodeplane('cleanup', '--leave-kube-proxy');
  expect(traces()).toEqual(theirTraces);
  expect(await whoAnswers()).toBe('theirs');
  expect(standing()).toBe('not begun');
});

it('from mode ipvs to a kube-proxy in mode iptables, which has the node to itself', async () => {
  const agent = await node.startAgent({ manifests, flags: ['--proxy-mode', 'ipvs'] });
  await expect.poll(whoAnswers, POLL).toBe('web');
  await agent.stop();
  startKubeProxyIptables();
  nodeplane('cleanup', '--leave-kube-proxy');
  expect(traces()).toEqual(NOTHING);
  expect(await whoAnswers()).toBe('theirs');
  expect(iptables('mangle', '-S')).not.toContain('KUBE-');
  expect(standing()).toBe('not begun');
});
