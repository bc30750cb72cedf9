import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { createNode, linksOf, snapshot } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

const vethsOf = (namespace: Parameters<typeof linksOf>[0]) =>
  linksOf(namespace).filter(({ ifname }) => /^(veth|eth)/.test(ifname));

describe('DEL', () => {
  it('removes interface and reservations, and succeeds again when nothing is left', async () => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    await node.add(pod);
    await node.add(other);
    await node.del(pod);
    expect(vethsOf(pod)).toEqual([]);
    expect(vethsOf(node.namespace)).toHaveLength(1);
    expect(node.reservations().sort()).toEqual(['10.244.1.3', 'fd00:10:244:1::3']);
    const before = snapshot([node.namespace, pod, other], node.dataDir);
    await node.del(pod);
    expect(snapshot([node.namespace, pod, other], node.dataDir)).toEqual(before);
  });

  it('on a node that never saw the pod makes nothing', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const before = snapshot([node.namespace, pod], node.dataDir);
    await node.del(pod);
    expect(snapshot([node.namespace, pod], node.dataDir)).toEqual(before);
  });

  it.each([
    ['is empty', ''],
    ['is not given', undefined],
    ['names nothing', '/run/netns/nodeplane-not-there'],
    ['names something else', '/etc/hostname'],
  ])('works when CNI_NETNS %s', async (_, netns) => {
    const node = createNode();
    const pod = createNamespace('pod');
    await node.add(pod);
    await node.del(pod, { env: { CNI_NETNS: netns } });
    expect(vethsOf(node.namespace)).toEqual([]);
    expect(vethsOf(pod)).toEqual([]);
    expect(node.reservations()).toEqual([]);
  });

  it('works when the namespace is gone', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    await node.add(pod);
    const { name, path } = pod;
    pod.remove();
    await node.del(path, { containerId: name });
    expect(vethsOf(node.namespace)).toEqual([]);
    expect(node.reservations()).toEqual([]);
  });

  it.each([
    ['ranges', (dataDir: string) => ({ ipam: { type: 'host-local', dataDir } })],
    ['usable values', (dataDir: string) => ({ ipam: { type: 5, ranges: 'x', dataDir }, bridge: 7, mtu: 'x', vlan: 3 })],
    ['a usable previous result', (dataDir: string) => ({ ipam: { dataDir }, prevResult: { cniVersion: 'x', ips: 5 } })],
  ])('works with a configuration that has lost its %s', async (_, rest) => {
    const node = createNode();
    const pod = createNamespace('pod');
    await node.add(pod);
    await node.del(pod, { config: { cniVersion: '1.0.0', name: 'net', ...rest(node.dataDir) } });
    expect(vethsOf(pod)).toEqual([]);
    expect(node.reservations()).toEqual([]);
  });

  it('removes the link even if the configuration has lost its ipam key', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    await node.add(pod);
    await node.del(pod, { config: { cniVersion: '1.0.0', name: 'net' } });
    expect(vethsOf(pod)).toEqual([]);
  });

  it('finds reservations of the older format', async () => {
    const node = createNode();
    mkdirSync(join(node.dataDir, 'net'));
    writeFileSync(join(node.dataDir, 'net', '10.244.1.9'), 'container-1');
    await node.del('/run/netns/nodeplane-not-there');
    expect(node.reservations()).toEqual([]);
  });

  it('removes an interface that another bridge plugin made', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    node.namespace.run('ip', 'link', 'add', 'vethother', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pod.name);
    await node.del(pod);
    expect(vethsOf(pod)).toEqual([]);
    expect(vethsOf(node.namespace)).toEqual([]);
  });

  it('leaves alone what no bridge plugin can have made', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    pod.run('ip', 'link', 'add', 'eth0', 'type', 'bridge');
    const { status, stderr } = await callPlugin(node.namespace, { command: 'DEL', netns: pod, config: node.config() });
    expect(status).toBe(0);
    expect(stderr).toContain(`Left "eth0" in "${pod.path}" alone`);
    expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo', 'eth0']);
  });

  it('refuses its own namespace, whose interfaces are the node’s', async () => {
    const node = createNode();
    node.namespace.run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1');
    const before = linksOf(node.namespace);
    const { status, json } = await callPlugin(node.namespace, {
      command: 'DEL',
      netns: node.namespace,
      config: node.config(),
    });
    expect(status).toBe(1);
    expect(json?.code).toBe(8);
    expect(linksOf(node.namespace)).toEqual(before);
  });

  it('gives the address back after the link is gone, and can be repeated when that fails', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    await node.add(pod);
    const lock = join(node.dataDir, 'net', 'lock');
    rmSync(lock);
    mkdirSync(lock);
    const call = { command: 'DEL', containerId: pod.name, netns: pod, config: node.config() };
    const { status, json } = await callPlugin(node.namespace, call);
    expect(status).toBe(1);
    expect(json).toMatchObject({ code: 5, msg: expect.stringContaining(join(node.dataDir, 'net')) });
    expect(vethsOf(pod)).toEqual([]);
    expect(node.reservations()).toHaveLength(2);
    rmSync(lock, { recursive: true });
    await node.del(pod);
    expect(node.reservations()).toEqual([]);
  });
});
