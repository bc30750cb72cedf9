import { existsSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createHost, type Host } from '../host.ts';
import type { Agent } from '../lab.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { prepareNode } from '../node-state.ts';
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
  const remarks = () => notable().map(({ remarks }) => String(remarks).split('\n').length);
  prepareNode(namespace, 'docker-legacy');
  for (const name of ['a', 'b', 'c']) await addPod(name);
  await expect.poll(remarks).toEqual([2]);
  expect(notable()[0]!.remarks).toMatch(/FORWARD of legacy iptables \(IPv4\) drops/);
  for (const program of ['iptables-legacy', 'ip6tables-legacy']) namespace.run(program, '-P', 'FORWARD', 'ACCEPT');
  await addPod('d');
  namespace.run('iptables-legacy', '-P', 'FORWARD', 'DROP');
  for (const name of ['e', 'f']) await addPod(name);
  await expect.poll(remarks).toEqual([2, 1]);
});
