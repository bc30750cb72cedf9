import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createFolder, createNamespace, removeAll } from '../namespace.ts';
import { createNode, linksOf, reaches } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

/** An IPAM plugin that notes each call and answers as told. */
function recordingPlugin(answer: string, status = 0) {
  const folder = createFolder('ipam').path;
  const log = join(folder, 'log');
  const script = `#!/bin/sh\necho "$CNI_COMMAND $CNI_CONTAINERID" >> ${log}\ncat > ${folder}/stdin\necho '${answer}'\nexit ${status}\n`;
  writeFileSync(join(folder, 'test-ipam'), script);
  chmodSync(join(folder, 'test-ipam'), 0o755);
  return {
    env: { CNI_PATH: `/nowhere:${folder}` },
    calls: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
    stdin: () => JSON.parse(readFileSync(join(folder, 'stdin'), 'utf8')),
  };
}

const RESULT = JSON.stringify({
  cniVersion: '0.4.0',
  ips: [{ version: '4', address: '10.5.0.7/24', gateway: '10.5.0.1' }],
  routes: [{ dst: '10.96.0.0/12' }],
  dns: { nameservers: ['10.5.0.10'] },
});

describe('addresses managed by another plugin', () => {
  it('come from the reference static plugin', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const ipam = { type: 'static', addresses: [{ address: '10.5.0.7/24', gateway: '10.5.0.1' }] };
    const config = { cniVersion: '1.0.0', name: 'net', dataDir: node.dataDir, ipam };
    const call = { config, env: { CNI_PATH: '/usr/lib/cni' } };
    const prevResult = await node.add(pod, call);
    expect(prevResult.ips).toEqual([{ interface: 2, address: '10.5.0.7/24', gateway: '10.5.0.1' }]);
    expect(reaches(pod, '10.5.0.1')).toBe(true);
    const checked = { command: 'CHECK', containerId: pod.name, netns: pod, ...call, config: { ...config, prevResult } };
    expect(await callPlugin(node.namespace, checked)).toMatchObject({ status: 0 });
    await node.del(pod, call);
    expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
  });

  it('are asked for with the whole configuration, and given back by the same plugin', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const plugin = recordingPlugin(RESULT);
    const { dataDir } = node;
    const config = { cniVersion: '1.1.0', name: 'net', ipam: { type: 'test-ipam', pool: 'x' }, extra: [1], dataDir };
    const result = await node.add(pod, { config, env: plugin.env });
    expect(plugin.stdin()).toEqual(config);
    expect(result).toMatchObject({
      ips: [{ interface: 2, address: '10.5.0.7/24', gateway: '10.5.0.1' }],
      routes: [
        { dst: '10.96.0.0/12', gw: '10.5.0.1' },
        { dst: '0.0.0.0/0', gw: '10.5.0.1' },
      ],
      dns: { nameservers: ['10.5.0.10'] },
    });
    await node.del(pod, { config, env: plugin.env });
    const valid = { ...config, 'cni.dev/valid-attachments': [] };
    for (const command of ['STATUS', 'GC']) {
      expect(await callPlugin(node.namespace, { command, config: valid, env: plugin.env })).toMatchObject({
        status: 0,
      });
    }
    expect(plugin.calls().map((line) => line.split(' ')[0])).toEqual(['ADD', 'DEL', 'STATUS', 'GC']);
  });

  it('are given back when a later step fails', async () => {
    const node = createNode();
    const plugin = recordingPlugin(RESULT.replace('"10.96.0.0/12"', '"10.96.0.0/12","gw":"192.0.2.9"'));
    const config = { cniVersion: '1.0.0', name: 'net', dataDir: node.dataDir, ipam: { type: 'test-ipam' } };
    const call = { command: 'ADD', netns: createNamespace('pod'), config, env: plugin.env };
    expect((await callPlugin(node.namespace, call)).json).toMatchObject({ code: 105 });
    expect(plugin.calls()).toEqual(['ADD container-1', 'DEL container-1']);
    expect(linksOf(node.namespace).map(({ ifname }) => ifname)).toEqual(['lo']);
  });

  it.each([
    ['{"code": 7, "msg": "no pool", "details": "x"}', 7, 'IPAM plugin "test-ipam" failed (ADD): no pool'],
    ['panic', 109, 'IPAM plugin "test-ipam" failed (ADD): panic'],
  ])('are refused with the plugin’s own words: %s', async (answer, code, msg) => {
    const node = createNode();
    const plugin = recordingPlugin(answer, 1);
    const config = { cniVersion: '1.0.0', name: 'net', dataDir: node.dataDir, ipam: { type: 'test-ipam' } };
    const call = { command: 'ADD', netns: createNamespace('pod'), config, env: plugin.env };
    expect((await callPlugin(node.namespace, call)).json).toMatchObject({ code, msg });
    expect(linksOf(node.namespace).map(({ ifname }) => ifname)).toEqual(['lo']);
  });

  it('may be no addresses at all, which is an error', async () => {
    const node = createNode();
    const plugin = recordingPlugin('{"cniVersion":"1.0.0"}');
    const config = { cniVersion: '1.0.0', name: 'net', dataDir: node.dataDir, ipam: { type: 'test-ipam' } };
    const call = { command: 'ADD', netns: createNamespace('pod'), config, env: plugin.env };
    expect((await callPlugin(node.namespace, call)).json).toMatchObject({ code: 109 });
  });

  it('do not keep STATUS and GC from succeeding when the plugin is older than these', async () => {
    const node = createNode();
    const plugin = recordingPlugin('{"code": 4, "msg": "unknown CNI_COMMAND"}', 1);
    const config = {
      cniVersion: '1.1.0',
      name: 'net',
      ipam: { type: 'test-ipam' },
      'cni.dev/valid-attachments': [],
    };
    for (const command of ['STATUS', 'GC']) {
      expect(await callPlugin(node.namespace, { command, config, env: plugin.env })).toMatchObject({ status: 0 });
    }
  });
});
