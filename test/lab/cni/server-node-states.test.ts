import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { manifestOf, saveManifest } from '../../samples/manifests.ts';
import { createHost, type Host } from '../host.ts';
import { execIn } from '../iptables/fixtures.ts';
import type { Agent } from '../lab.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { prepareNode } from '../node-state.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { createServedNode, type ServedNode } from './served-node.ts';

// The standard configuration by the agent, on nodes where others have been.

let served: ServedNode;
let agent: Agent;
let outside: Host;

beforeEach(async () => {
  served = createServedNode();
  outside = served.addClient('outside');
  await outside.serve({ port: 9090 });
});
afterEach(removeAll);

async function addPod(name: string): Promise<Host> {
  // No runtime makes a pod before there is a configuration.
  await expect.poll(() => existsSync(served.conflist)).toBe(true);
  const namespace = createNamespace(name);
  const added = await served.call('ADD', namespace);
  expect(added).toMatchObject({ status: 0, stderr: '' });
  const ips = added.json!.ips!.map(({ address }) => address.replace(/\/.*/, ''));
  return createHost({ name, namespace, ips });
}

const connects = async (pod: Host) => (await pod.connect({ ip: outside.ip(), port: 9090 })).kind;
const notable = () => agent.logs().filter(({ level }) => level !== 'info');

it('lets pods through the FORWARD chain of a Docker that comes after them, and reports nothing', async () => {
  const { namespace } = served.node;
  prepareNode(namespace, 'kubelet-nft');
  agent = await served.startAgent({ flags: ['--proxy-mode', 'nftables'] });
  const pod = await addPod('early');
  expect(namespace.run('nft', 'list', 'table', 'ip', 'filter')).not.toContain('FORWARD');
  expect(await connects(pod)).toBe('answered');
  prepareNode(namespace, 'docker-nft');
  await expect.poll(() => namespace.run('iptables-nft', '-S')).toContain('-j NODEPLANE-FORWARD');
  expect(await connects(pod)).toBe('answered');
  const told = { msg: 'Pods are let through chain FORWARD now, which others made or changed' };
  await expect.poll(() => agent.logs()).toContainEqual(expect.objectContaining(told));
  // Docker is stopped, and what is left of it removed.
  for (const program of ['iptables-nft', 'ip6tables-nft']) {
    namespace.run(program, '-F');
    namespace.run(program, '-P', 'FORWARD', 'ACCEPT');
  }
  await expect.poll(() => namespace.run('iptables-nft', '-S')).toContain('-j NODEPLANE-FORWARD');
  expect(await connects(pod)).toBe('answered');
  expect(notable()).toEqual([]);
});

it('lets through it, too, what comes for a NodePort and goes to a pod of another node', async () => {
  const { node, folder } = served;
  // Stands for a pod of another node.
  const far = served.addClient('far');
  far.namespace.run('ip', 'address', 'add', '10.244.2.9/32', 'dev', 'eth0');
  node.namespace.run('ip', 'route', 'add', '10.244.2.0/24', 'via', far.ip());
  await far.serve({ port: 8080, ip: '10.244.2.9' });
  const slice = makeSlice('shop/far', ['10.244.2.9'], { addressType: 'IPv4', ports: [{ port: 8080 }] });
  const ports = [{ port: 80, nodePort: 30080 }];
  const service = makeService('shop/far', { clusterIP: '10.96.0.10', type: 'NodePort', ports });
  saveManifest(join(folder, 'manifests'), 'far.yaml', manifestOf(service, slice));
  const flags = ['--proxy-mode', 'nftables', '--cluster-cidr', '10.244.0.0/16'];
  agent = await served.startAgent({ flags: [...flags, '--nodeport-addresses', '192.168.50.0/24,fd00:50::/64'] });
  const here = await addPod('here');
  const reached = async () => (await outside.connect({ ip: node.ip(), port: 30080 })).kind;
  expect(await reached()).toBe('answered');
  prepareNode(node.namespace, 'docker-nft');
  await expect.poll(() => node.namespace.run('iptables-nft', '-S')).toContain('-j NODEPLANE-FORWARD');
  expect(await reached()).toBe('answered');
  expect(await served.call('DEL', here.namespace)).toMatchObject({ status: 0 });
  expect(await reached()).toBe('answered');
  expect(notable()).toEqual([]);
});

it('has the node forward their packets again when somebody switches that off, as a hardened system does', async () => {
  const { namespace } = served.node;
  const off = () => namespace.run('sysctl', '-qw', 'net.ipv4.ip_forward=0', 'net.ipv6.conf.all.forwarding=0');
  const isOn = () => namespace.run('sysctl', '-n', 'net.ipv4.ip_forward', 'net.ipv6.conf.all.forwarding') === '1\n1\n';
  agent = await served.startAgent({ flags: ['--proxy-mode', 'nftables'] });
  off();
  // Without pods it is nobody's business.
  await delay(9000);
  expect(isOn()).toBe(false);
  const pod = await addPod('pod');
  expect(isOn()).toBe(true);
  off();
  await expect.poll(isOn).toBe(true);
  expect(await connects(pod)).toBe('answered');
  const told = { level: 'warn', msg: expect.stringContaining('switched off that this node forwards packets') };
  expect(notable()).toEqual([expect.objectContaining({ ...told, families: ['IPv4', 'IPv6'] })]);
  // Also while no agent ran.
  await agent.stop();
  off();
  agent = await served.startAgent({ flags: ['--proxy-mode', 'nftables'] });
  await expect.poll(isOn).toBe(true);
});

it('keeps the way of pods behind a firewall that comes after them, and is not at odds with it for long', async () => {
  const { namespace } = served.node;
  prepareNode(namespace, 'docker-nft');
  agent = await served.startAgent({ flags: ['--proxy-mode', 'nftables'] });
  const pod = await addPod('early');
  expect(await connects(pod)).toBe('answered');
  const last = () => namespace.run('iptables-nft', '-S', 'FORWARD').trim().split('\n').at(-1);
  namespace.run('iptables-nft', '-A', 'FORWARD', '-d', outside.ip(), '-j', 'DROP');
  await expect.poll(last).toContain('-j NODEPLANE-FORWARD');
  expect(await connects(pod)).toBe('timeout');

  const moved = () =>
    agent.logs().filter(({ msg }) => String(msg).includes('behind rules that others put there')).length;
  await expect.poll(moved).toBe(1);
  // Somebody who wants to be the last one, too.
  const rule = ['FORWARD', '-m', 'mark', '--mark', '7', '-j', 'ACCEPT'];
  for (let n = 0; n < 20; n++) {
    namespace.run('iptables-nft', '-A', ...rule);
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  expect(moved()).toBeLessThanOrEqual(5);
  await expect.poll(last, { timeout: 20_000 }).toContain('-j NODEPLANE-FORWARD');
  expect(notable()).toEqual([]);
});

it('says once that legacy iptables drops, however many pods come, and again when it does so again', async () => {
  const { namespace } = served.node;
  prepareNode(namespace, 'kubelet-legacy');
  agent = await served.startAgent({ flags: ['--proxy-mode', 'nftables'] });
  await addPod('undisturbed');
  expect(notable()).toEqual([]);
  const soon = { timeout: patient(15_000), interval: 500 };
  const told = () => notable().map(({ msg, reason }) => `${msg}: ${reason}`);
  const drops = (family: string) =>
    expect.stringMatching(`rules may drop packets of pods: Chain FORWARD of legacy iptables .${family}. drops`);
  prepareNode(namespace, 'docker-legacy');
  for (const name of ['a', 'b', 'c']) await addPod(name);
  await expect.poll(told, soon).toEqual([drops('IPv4'), drops('IPv6')]);
  for (const program of ['iptables-legacy', 'ip6tables-legacy']) namespace.run(program, '-P', 'FORWARD', 'ACCEPT');
  await addPod('d');
  const status = async () => (await execIn(namespace)(builtProgram('nodeplane'), ['status'])).stdout;
  await expect.poll(status, soon).not.toContain('legacy iptables');
  namespace.run('iptables-legacy', '-P', 'FORWARD', 'DROP');
  for (const name of ['e', 'f']) await addPod(name);
  await expect.poll(told, soon).toEqual([drops('IPv4'), drops('IPv6'), drops('IPv4')]);
});
