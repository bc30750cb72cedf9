import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FakeApiServer } from '../../fakes/api-server/index.ts';
import { type LabNode, type Pod, removeAll } from '../lab.ts';
import { ip } from '../wire.ts';
import { type Cluster, createCluster, FAMILIES, POD_PORT } from './cluster.ts';
import { apiServerObjects } from './cluster-objects.ts';

// Nodes come, go and change, told by an API server.

let api: FakeApiServer;
let cluster: Cluster;
let [one, two, three]: LabNode[] = [];
let [pod1, , pod3]: Pod[] = [];

beforeAll(async () => {
  cluster = await createCluster({
    async objects(lab) {
      const objects = await apiServerObjects(lab);
      ({ api } = objects);
      return objects;
    },
  });
  [one, two, three] = cluster.nodes;
  [pod1, , pod3] = cluster.pods;
  await cluster.start('--routes', 'auto');
});
afterAll(async () => {
  await cluster.stop();
  await api.stop();
  removeAll();
});

const routesTo = (node: LabNode, cidrs: readonly string[]) =>
  cidrs.map((cidr) => node.namespace.run('ip', cidr.includes(':') ? '-6' : '-4', 'route', 'show', cidr));
const answers = (from: Pod, to: Pod) =>
  expect.poll(() => Promise.all(FAMILIES.map((family) => cluster.ask(from, to, family))));
const bothFrom = (from: Pod, to: Pod) => FAMILIES.map((family) => `${to.name} saw ${from.ip(family)}`);
const everybody = async () => {
  for (const from of cluster.pods) for (const to of cluster.pods) await answers(from, to).toEqual(bothFrom(from, to));
};

it('pods reach the pods of all nodes', everybody);

it('a node leaves: the others have no route to it; it joins again', async () => {
  cluster.forget(two!);
  for (const node of [one!, three!]) await expect.poll(() => routesTo(node, two!.podCidrs)).toEqual(['', '']);
  await answers(pod1!, pod3!).toEqual(bothFrom(pod1!, pod3!));
  cluster.tell(two!);
  await everybody();
});

it('agents start while the API server is away: what was known goes on', async () => {
  await api.stop();
  const flow = await pod1!.startFlow({ ip: pod3!.ip(), port: POD_PORT });
  for (const by of ['SIGTERM', 'SIGKILL'] as const) {
    await cluster.restart(one!, { by, flags: ['--routes', 'auto'], until: 'live' });
    await answers(pod1!, pod3!).toEqual(bothFrom(pod1!, pod3!));
  }
  await api.start();
  // What changed meanwhile is found.
  cluster.forget(two!);
  await expect.poll(() => routesTo(one!, two!.podCidrs)).toEqual(['', '']);
  cluster.tell(two!);
  await everybody();
  const { sent, answered } = await flow.stop();
  expect(answered).toBe(sent);
});

it('a node is deleted and registers again with other pod CIDRs: new pods are reached at theirs', async () => {
  cluster.forget(two!);
  await expect.poll(() => routesTo(one!, two!.podCidrs)).toEqual(['', '']);
  const podCidrs = ['10.244.22.0/24', 'fd00:10:244:22::/64'];
  cluster.tell(two!, { podCidrs });
  const { plugins, ...list } = two!.conflist;
  const ipam = { ...(plugins[0]!.ipam as object), ranges: podCidrs.map((subnet) => [{ subnet }]) };
  const conflist = { ...list, plugins: [{ ...plugins[0]!, bridge: 'cni1', ipam }] };
  const renewed = two!.addPod('renewed', { conflist });
  await renewed.serve({ port: POD_PORT });
  for (const from of [pod1!, pod3!]) {
    await answers(from, renewed).toEqual(bothFrom(from, renewed));
    await answers(renewed, from).toEqual(bothFrom(renewed, from));
  }
  // The range may be another node's by now.
  for (const node of [one!, three!]) expect(routesTo(node, two!.podCidrs)).toEqual(['', '']);
  const ownAddress = () => two!.namespace.run('ip', '-o', 'address', 'show', 'dev', 'nodeplane-v4');
  await expect.poll(ownAddress).toContain('10.244.22.0/32');
});

it('a node gets another address, and loses the old one', async () => {
  const [old, added] = [three!.ips, ['192.168.60.33', 'fd00:60::33']];
  const change = (verb: 'add' | 'delete', ips: readonly string[]) =>
    ips.map((address) => `address ${verb} ${address}/${address.includes(':') ? 64 : 24} dev eth0`);
  // Otherwise the kernel removes the other addresses of a prefix with the first.
  three!.namespace.run('sysctl', '-qw', 'net.ipv4.conf.all.promote_secondaries=1');
  ip(three!.namespace, change('add', added));
  cluster.tell(three!, { ips: added });
  const remotes = () => one!.namespace.run('bridge', 'fdb', 'show', 'dev', 'nodeplane-v4');
  const local = () => three!.namespace.run('ip', '-d', 'link', 'show', 'nodeplane-v4');
  await expect.poll(remotes).toContain('dst 192.168.60.33');
  await expect.poll(local).toContain('local 192.168.60.33');
  ip(three!.namespace, change('delete', old));
  await answers(pod1!, pod3!).toEqual(bothFrom(pod1!, pod3!));
  await answers(pod3!, pod1!).toEqual(bothFrom(pod3!, pod1!));
});
