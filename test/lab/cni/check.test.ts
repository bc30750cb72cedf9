import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { type BareNode, createNode, linksOf, snapshot } from './fixture.ts';
import { callPlugin, type PluginJson } from './plugin.ts';

afterEach(removeAll);

describe('CHECK', () => {
  let node: BareNode;
  let pod: TestNamespace;
  let prevResult: PluginJson;
  let hostEnd: string;
  beforeEach(async () => {
    node = createNode();
    pod = createNamespace('pod');
    prevResult = await node.add(pod);
    hostEnd = prevResult.interfaces![1]!.name;
  });
  const check = (change: object = {}) =>
    callPlugin(node.namespace, {
      command: 'CHECK',
      containerId: pod.name,
      netns: pod,
      config: node.config({ prevResult, ...change }),
    });

  it('finds nothing wrong with what ADD made, changes nothing and prints nothing', async () => {
    const before = snapshot([node.namespace, pod], node.dataDir);
    expect(await check()).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect(await check({ cniVersion: '0.4.0' })).toMatchObject({ status: 0 });
    expect(snapshot([node.namespace, pod], node.dataDir)).toEqual(before);
  });

  it('does not mind what others may change', async () => {
    pod.run('ip', 'address', 'add', '192.0.2.7/32', 'dev', 'eth0');
    pod.run('ip', 'route', 'add', '198.51.100.0/24', 'dev', 'eth0');
    node.namespace.run('ip', 'link', 'set', hostEnd, 'address', '02:00:00:00:00:99');
    node.namespace.run('ip', 'link', 'set', 'cni0', 'address', '02:00:00:00:00:98');
    expect(await check()).toMatchObject({ status: 0 });
  });

  it('works for a pod of the reference bridge plugin, after the node was switched', async () => {
    const old = createNamespace('old');
    const config = node.config({ cniVersion: '1.0.0', isGateway: true, isDefaultGateway: true, hairpinMode: true });
    const call = { containerId: 'old', netns: old, env: { CNI_PATH: '/usr/lib/cni' } };
    const program = '/usr/lib/cni/bridge';
    const added = await callPlugin(node.namespace, { command: 'ADD', ...call, config, program });
    expect(added.status).toBe(0);
    const checked = await callPlugin(node.namespace, {
      command: 'CHECK',
      ...call,
      config: { ...config, prevResult: added.json },
    });
    expect(checked).toMatchObject({ status: 0 });
  });

  it.each<[string, (hostEnd: string) => void, RegExp]>([
    ['the interface', () => pod.run('ip', 'link', 'del', 'eth0'), /there is no "eth0"/],
    ['its state', () => pod.run('ip', 'link', 'set', 'eth0', 'down'), /"eth0" is down/],
    ['its MAC', () => pod.run('ip', 'link', 'set', 'eth0', 'address', '02:00:00:00:00:77'), /has the MAC 02:00/],
    ['an address', () => pod.run('ip', 'address', 'del', '10.244.1.2/24', 'dev', 'eth0'), /lacks .* 10\.244\.1\.2\/24/],
    ['a route', () => pod.run('ip', '-6', 'route', 'del', 'default'), /route ::\/0 via fd00:10:244:1::1 is missing/],
    ['the host’s end', (name) => node.namespace.run('ip', 'link', 'set', name, 'down'), /is down/],
    [
      'the bridge port',
      (name) => node.namespace.run('ip', 'link', 'set', name, 'nomaster'),
      /is no port of the bridge/,
    ],
    [
      'the hairpin flag',
      (name) => node.namespace.run('bridge', 'link', 'set', 'dev', name, 'hairpin', 'off'),
      /hairpin mode of .* is off/,
    ],
    ['the bridge', () => node.namespace.run('ip', 'link', 'set', 'cni0', 'down'), /bridge "cni0" is down/],
    [
      'the gateway',
      () => node.namespace.run('ip', 'address', 'del', '10.244.1.1/24', 'dev', 'cni0'),
      /bridge "cni0" lacks the address 10\.244\.1\.1\/24/,
    ],
    [
      'the gateway’s prefix',
      () => {
        node.namespace.run('ip', 'address', 'del', '10.244.1.1/24', 'dev', 'cni0');
        node.namespace.run('ip', 'address', 'add', '10.244.1.1/25', 'dev', 'cni0');
      },
      /bridge "cni0" lacks the address 10\.244\.1\.1\/24/,
    ],
    ['forwarding', () => node.namespace.run('sysctl', '-qw', 'net.ipv4.ip_forward=0'), /does not forward/],
    ['a reservation', () => rmSync(join(node.dataDir, 'net', '10.244.1.2')), /10\.244\.1\.2 is not reserved/],
  ])('says when %s was changed', async (_, change, message) => {
    change(hostEnd);
    const { status, json } = await check();
    expect(status).toBe(1);
    expect(json).toMatchObject({ code: 108, msg: expect.stringMatching(message) });
    expect(json!.msg).toContain(`Attachment "net/${pod.name}/eth0" is not as ADD made it: `);
  });

  it('says all that differs at once', async () => {
    pod.run('ip', 'address', 'flush', 'dev', 'eth0', 'scope', 'global');
    const { json } = await check();
    expect(json!.msg).toMatch(/10\.244\.1\.2\/24.*fd00:10:244:1::2\/64.*0\.0\.0\.0\/0 via/);
  });

  it('refuses results that cannot be read', async () => {
    for (const bad of [5, { cniVersion: '9.9.9' }, { ...prevResult, ips: [{ address: 'x' }] }]) {
      expect((await check({ prevResult: bad })).json).toMatchObject({ code: 7 });
    }
    expect(linksOf(pod)).toHaveLength(2);
  });
});
