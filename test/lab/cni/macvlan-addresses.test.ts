import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createFolder, createNamespace, removeAll } from '../namespace.ts';
import { createFeatureWorld } from './feature-world.ts';
import { linksOf } from './fixture.ts';
import type { PluginJson } from './plugin.ts';

afterEach(removeAll);

const ANSWER = {
  cniVersion: '1.0.0',
  ips: [{ address: '192.0.2.77/24', gateway: '192.0.2.2' }, { address: '2001:db8::77/64' }],
  routes: [{ dst: '198.51.100.0/24' }, { dst: '0.0.0.0/0' }],
};

/** An IPAM plugin that notes each call with what it is given. */
function recordingPlugin(status = 0) {
  const folder = createFolder('ipam').path;
  const log = join(folder, 'log');
  const answer = status === 0 ? JSON.stringify(ANSWER) : '{"code": 7, "msg": "no lease"}';
  const script = `#!/bin/sh\nprintf '%s %s %s\\n' "$CNI_COMMAND" "$CNI_IFNAME" "$(cat)" >> ${log}\necho '${answer}'\nexit ${status}\n`;
  writeFileSync(join(folder, 'test-ipam'), script);
  chmodSync(join(folder, 'test-ipam'), 0o755);
  return {
    path: folder,
    calls: () =>
      readFileSync(log, 'utf8')
        .trim()
        .split('\n')
        .map((line) => {
          const [, command, ifname, config] = /^(\w+) (\w*) (.*)$/.exec(line)!;
          return { command, ifname, config: JSON.parse(config!) };
        }),
  };
}

function asking(ipam: object) {
  return {
    macvlan: { namespaces: ['*'], masters: ['up0'], mode: 'bridge', ipam, routes: [] },
    runtimeConfig: { 'io.kubernetes.cri.pod-annotations': { 'nodeplane.io/assign-macvlan': 'true' } },
  };
}

const options = (path: string) => ({
  env: { CNI_PATH: path, CNI_ARGS: 'IgnoreUnknown=1;K8S_POD_NAMESPACE=egress;K8S_POD_NAME=router-1' },
});

it('macvlan0 gets its addresses and routes from the plugin of its own, which gets them back', async () => {
  const world = createFeatureWorld();
  const plugin = recordingPlugin();
  const ipam = { type: 'test-ipam', pool: 'x' };
  const pod = await world.addPod('pod', asking(ipam), options(plugin.path));
  const { interfaces, ips, routes } = pod.result as PluginJson;
  const position = interfaces!.findIndex(({ name }) => name === 'macvlan0');
  expect(ips!.filter((ip) => ip.interface === position).map(({ address }) => address)).toEqual([
    '192.0.2.77/24',
    '2001:db8::77/64',
  ]);
  expect(ips!.filter((ip) => ip.interface !== position)).toHaveLength(2);
  expect(routes).toContainEqual({ dst: '198.51.100.0/24', gw: '192.0.2.2' });
  expect(routes!.filter(({ dst }) => dst === '0.0.0.0/0')).toEqual([{ dst: '0.0.0.0/0', gw: '10.244.1.1' }]);
  await world.outside.serve({ port: 80 });
  expect(await pod.connect({ ip: '192.0.2.2', port: 80 })).toMatchObject({ by: 'outside', source: '192.0.2.77' });
  await world.nodeHost.serve({ port: 81 });
  expect(await pod.connect({ ip: '192.0.2.1', port: 81 })).toMatchObject({ by: 'node', source: pod.ip() });

  const check = { ...asking(ipam), prevResult: pod.result };
  expect(await world.call('CHECK', pod.namespace, check, options(plugin.path))).toMatchObject({
    status: 0,
    stdout: '',
  });
  pod.namespace.run('ip', 'address', 'del', '192.0.2.77/24', 'dev', 'macvlan0');
  const differs = await world.call('CHECK', pod.namespace, check, options(plugin.path));
  expect(differs.json).toMatchObject({
    code: 108,
    msg: expect.stringContaining('"macvlan0" lacks the address 192.0.2.77/24'),
  });

  const gc = { ...asking(ipam), 'cni.dev/valid-attachments': [{ containerID: pod.namespace.name, ifname: 'eth0' }] };
  expect(await world.call('GC', pod.namespace, gc, options(plugin.path))).toMatchObject({ status: 0 });
  // The configuration of today says nothing of it any more.
  expect(await world.call('DEL', pod.namespace, {}, options(plugin.path))).toMatchObject({ status: 0, stdout: '' });
  expect(linksOf(pod.namespace).map(({ ifname }) => ifname)).toEqual(['lo']);
  const own = { cniVersion: '1.1.0', name: 'net-macvlan0', type: 'nodeplane-cni', ipam };
  expect(plugin.calls()).toEqual([
    { command: 'ADD', ifname: 'macvlan0', config: own },
    {
      command: 'GC',
      ifname: 'macvlan0',
      config: { ...own, 'cni.dev/valid-attachments': [{ containerID: pod.namespace.name, ifname: 'macvlan0' }] },
    },
    { command: 'DEL', ifname: 'macvlan0', config: own },
  ]);
});

it.each([
  ['refuses', 7, 'IPAM plugin "test-ipam" failed (ADD): no lease', 'test-ipam'],
  ['is not there', 7, 'Cannot find the IPAM plugin "nowhere"', 'nowhere'],
])('an ADD whose plugin %s leaves nothing', async (_, code, why, type) => {
  const world = createFeatureWorld();
  const plugin = recordingPlugin(1);
  const pod = createNamespace('pod');
  const { json } = await world.call('ADD', pod, asking({ type }), options(plugin.path));
  expect(json).toMatchObject({ code, msg: expect.stringContaining(why) });
  expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
  expect(world.node.reservations()).toEqual([]);
});
