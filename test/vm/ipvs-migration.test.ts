import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { KUBE_PROXY_OBJECTS, startKubeProxy, withAddresses } from '../lab/kube-proxy-1.36.2.ts';
import { addRoute, createLab, type Host, type LabNode, type Pod, removeAll } from '../lab/lab.ts';
import { PATIENCE } from '../lab/patience.ts';
import { builtProgram } from '../lab/programs.ts';
import { saveManifest } from '../samples/manifests.ts';

// To nodeplane from a kube-proxy in mode ipvs and back, and from mode ipvs of ours to a kube-proxy 1.36.2 in mode iptables. Service
// web of the kube-proxy leads to other pods than ours, so that the answer tells who served it.

const POLL = { timeout: 60_000 * PATIENCE, interval: 500 };
/** Of Service web in the golden rules. */
const VIP = '10.96.10.1';
const ENDPOINTS = ['10.244.1.10', '10.244.2.10'];
const lab = createLab();
const node: LabNode = lab.addNode({ name: 'n1' });
const manifests = join(lab.folder, 'manifests');
let theirs: readonly Pod[] = [];
let client: Host;

const run = (program: string, ...args: string[]) => node.namespace.run(program, ...args);
const nodeplane = (...args: string[]) => {
  const words = ['netns', 'exec', node.namespace.name, builtProgram('nodeplane'), ...args];
  const { status, stdout, stderr } = spawnSync('ip', words, { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
};
/** Addresses of the golden objects, with those pods behind Service web. */
const addressed = (pods: readonly Pod[]) =>
  Object.fromEntries([['10.199.0.2', node.ip()], ...ENDPOINTS.map((address, index) => [address, pods[index]!.ip()])]);

/** What a kube-proxy in mode ipvs makes of the Service (pkg/proxy/ipvs), and makes again when it starts. */
function startKubeProxyIpvs(): void {
  run('ip', 'link', 'add', 'kube-ipvs0', 'type', 'dummy');
  run('ip', 'address', 'add', `${VIP}/32`, 'dev', 'kube-ipvs0');
  run('ipset', 'create', 'KUBE-CLUSTER-IP', 'hash:ip,port');
  run('ipset', 'create', 'KUBE-6-CLUSTER-IP', 'hash:ip,port', 'family', 'inet6');
  run('ipset', 'add', 'KUBE-CLUSTER-IP', `${VIP},tcp:80`);
  run('ipvsadm', '-A', '-t', `${VIP}:80`, '-s', 'rr');
  run('sysctl', '-qw', 'net.ipv4.vs.conntrack=1');
  // What is over is forgotten after 5 s, not after 2 minutes (its flags --ipvs-tcp-timeout, --ipvs-tcpfin-timeout).
  run('ipvsadm', '--set', '5', '5', '5');
  for (const pod of theirs) run('ipvsadm', '-a', '-t', `${VIP}:80`, '-r', `${pod.ip()}:8080`, '-m');
  for (const [program, set] of [
    ['iptables-nft', 'KUBE-CLUSTER-IP'],
    ['ip6tables-nft', 'KUBE-6-CLUSTER-IP'],
  ] as const) {
    const nat = (...args: string[]) => run(program, '-w', '-t', 'nat', ...args);
    nat('-N', 'KUBE-SERVICES');
    nat('-A', 'KUBE-SERVICES', '-m', 'set', '--match-set', set, 'dst,dst', '-j', 'ACCEPT');
    nat('-A', 'PREROUTING', '-m', 'comment', '--comment', 'kubernetes service portals', '-j', 'KUBE-SERVICES');
  }
}

/** Of mode ipvs, in whosever hands. */
const traces = () => ({
  servers: run('ipvsadm', '-Sn').split('\n').filter(Boolean).length,
  sets: run('ipset', 'list', '-n').split('\n').filter(Boolean),
  hasDevice: run('ip', '-o', 'link').includes('kube-ipvs0'),
});
const NOTHING = { servers: 0, sets: [], hasDevice: false };

/** The first part of the name of the pod that answers: `ours`, `theirs`; or what went wrong. */
async function whoAnswers(): Promise<string> {
  const outcome = await client.connect({ ip: VIP, port: 80 }, { timeoutMs: 5000 });
  return outcome.kind === 'answered' ? outcome.by.replace(/-\d$/, '') : outcome.kind;
}
const standing = () =>
  JSON.parse(nodeplane('migration', '-o', 'json', '--hostname-override', 'n1', '--manifests', manifests)).standing;

beforeAll(async () => {
  const [ours, others] = ['ours', 'theirs'].map((name) => [1, 2].map((number) => node.addPod(`${name}-${number}`)));
  for (const pod of [...ours!, ...others!]) await pod.serve({ port: 8080 });
  theirs = others!;
  client = lab.addClient('client');
  addRoute(client, '10.96.0.0/16', node);
  mkdirSync(manifests);
  saveManifest(manifests, 'objects.yaml', withAddresses(KUBE_PROXY_OBJECTS, { addresses: addressed(ours!) }));
});
afterEach(() => nodeplane('cleanup'));
afterAll(removeAll);

it('from a kube-proxy in mode ipvs to mode nftables, and back', async () => {
  startKubeProxyIpvs();
  expect(await whoAnswers()).toBe('theirs');
  expect(standing()).toBe('not begun');
  const theirTraces = traces();
  const agent = await node.startAgent({ manifests, flags: ['--proxy-mode', 'nftables'] });
  await expect.poll(whoAnswers, POLL).toBe('ours');
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
  await expect.poll(whoAnswers, POLL).toBe('ours');
  await agent.stop();
  await startKubeProxy({ namespace: node.namespace, addresses: addressed(theirs) }, 'iptables-nft');
  nodeplane('cleanup', '--leave-kube-proxy');
  expect(traces()).toEqual(NOTHING);
  expect(await whoAnswers()).toBe('theirs');
  expect(run('iptables-nft', '-w', '-t', 'mangle', '-S')).not.toContain('KUBE-IPVS');
  expect(standing()).toBe('not begun');
});
