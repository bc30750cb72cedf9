import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../lab.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { linksOf, reaches } from './fixture.ts';
import { createServedNode, installedConfig } from './served-node.ts';

const served = createServedNode();
const { node, call } = served;
let agent: Agent;

const ARGS = { CNI_ARGS: 'IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web-1' };
const veths = () => linksOf(node.namespace).filter(({ ifname }) => ifname.startsWith('veth'));

beforeAll(async () => {
  agent = await served.startAgent();
});
afterAll(removeAll);

describe('the plugin on the host, with an agent', () => {
  it('finds a socket that only root can use', () => {
    expect(statSync(dirname(served.socket)).mode & 0o777).toBe(0o700);
    expect(statSync(served.socket).mode & 0o777).toBe(0o600);
    expect(statSync(served.spoolDir).mode & 0o777).toBe(0o700);
  });

  it('serves every verb', async () => {
    const pod = createNamespace('pod');
    expect(await call('VERSION')).toMatchObject({ status: 0, json: { supportedVersions: expect.any(Array) } });
    expect(await call('STATUS')).toMatchObject({ status: 0, stdout: '' });

    const added = await call('ADD', pod, { env: ARGS });
    expect(added, added.stdout).toMatchObject({ status: 0 });
    const { ips, interfaces } = added.json!;
    expect(ips!.map(({ address }) => address)).toEqual([
      expect.stringMatching(/^10\.244\.1\.\d+\/24$/),
      expect.stringMatching(/^fd00:10:244:1::\w+\/64$/),
    ]);
    expect(interfaces!.at(-1)).toMatchObject({ name: 'eth0', sandbox: pod.path });
    for (const { gateway } of ips!) expect(reaches(pod, gateway)).toBe(true);

    const again = await call('ADD', pod);
    expect(again).toMatchObject({ status: 1, json: { code: expect.any(Number) } });
    expect(served.reservations()).toHaveLength(2);

    const withResult = { ...installedConfig(served.conflist), prevResult: added.json };
    expect(await call('CHECK', pod, { config: withResult })).toMatchObject({ status: 0, stdout: '' });
    pod.run('ip', 'link', 'set', 'eth0', 'down');
    expect(await call('CHECK', pod, { config: withResult })).toMatchObject({ status: 1 });

    expect(await call('DEL', pod)).toMatchObject({ status: 0, stdout: '' });
    expect(await call('DEL', pod)).toMatchObject({ status: 0, stdout: '' });
    expect(served.reservations()).toEqual([]);
    expect(veths()).toEqual([]);
  });

  it('collects what the runtime does not know any more', async () => {
    const [kept, gone] = [createNamespace('kept'), createNamespace('gone')];
    for (const pod of [kept, gone]) expect(await call('ADD', pod)).toMatchObject({ status: 0 });
    const valid = [{ containerID: kept.name, ifname: 'eth0' }];
    const config = { ...installedConfig(served.conflist), 'cni.dev/valid-attachments': valid };
    expect(await call('GC', undefined, { config })).toMatchObject({ status: 0, stdout: '' });
    expect(veths()).toHaveLength(1);
    expect(served.reservations()).toHaveLength(2);
    expect(await call('DEL', kept)).toMatchObject({ status: 0 });
  });

  it('counts requests and logs them by the pod’s name', async () => {
    const metrics = await agent.metrics();
    expect(metrics).toMatch(/nodeplane_cni_requests_total\{verb="ADD",code="0"\} [1-9]/);
    expect(metrics).toMatch(/nodeplane_cni_request_duration_seconds_count\{verb="DEL"\} [1-9]/);
    expect(metrics).toMatch(/nodeplane_cni_kept_requests 0/);
    expect(agent.logs()).toContainEqual(
      expect.objectContaining({ msg: 'CNI ADD', verb: 'ADD', pod: 'demo/web-1', ms: expect.any(Number) }),
    );
  });

  it('serves loopback under that name without the agent', async () => {
    const pod = createNamespace('lo');
    const program = join(served.binDir, 'loopback');
    const env = { NODEPLANE_CNI_SOCKET: '/nowhere' };
    const config = { cniVersion: '0.3.1', name: 'cni-loopback', type: 'loopback' };
    const lo = (command: string) => call(command, pod, { program, env, config, ifname: 'lo' });
    expect(await lo('CHECK')).toMatchObject({ status: 1, json: { code: 105 } });
    expect(await lo('ADD')).toMatchObject({
      status: 0,
      json: {
        cniVersion: '0.3.1',
        interfaces: [{ name: 'lo', sandbox: pod.path }],
        ips: [
          { version: '4', address: '127.0.0.1/8' },
          { version: '6', address: '::1/128' },
        ],
      },
    });
    expect(await lo('CHECK')).toMatchObject({ status: 0, stdout: '' });
    const prevResult = { cniVersion: '0.3.1', interfaces: [{ name: 'a"}{', mac: '00:00:00:00:00:01' }] };
    const chained = await call('ADD', pod, { program, env, config: { ...config, prevResult } });
    expect(chained.json).toEqual(prevResult);
    expect(await lo('DEL')).toMatchObject({ status: 0, stdout: '' });
    expect(await lo('CHECK')).toMatchObject({ status: 1 });
    expect(await call('DEL', undefined, { program, env, config, netns: '/nowhere' })).toMatchObject({ status: 0 });
    expect(await call('ADD', undefined, { program, env, config, netns: node.namespace })).toMatchObject({
      json: { code: 8 },
    });
    const wrong = await call('ADD', pod, { program, env, config: { ...config, cniVersion: '2.0.0' } });
    expect(wrong.json).toMatchObject({ code: 1 });
    const oldest = await call('ADD', pod, { program, env, config: { ...config, cniVersion: '0.2.0' } });
    expect(oldest.json).toEqual({
      cniVersion: '0.2.0',
      ip4: { ip: '127.0.0.1/8' },
      ip6: { ip: '::1/128' },
      dns: {},
    });
  });

  it('refuses a namespace that cannot be opened, and removes without one', async () => {
    expect(await call('ADD', undefined, { netns: '/run/netns/none' })).toMatchObject({ status: 1, json: { code: 4 } });
    expect(await call('ADD', undefined, { netns: '/etc/hostname' })).toMatchObject({ status: 1, json: { code: 4 } });
    expect(await call('ADD', undefined, { netns: node.namespace })).toMatchObject({ status: 1, json: { code: 8 } });
    expect(await call('DEL', undefined, { netns: '/run/netns/none' })).toMatchObject({ status: 0, stdout: '' });
    expect(await call('WHAT')).toMatchObject({ status: 1, json: { code: 4 } });
    expect(served.reservations()).toEqual([]);
  });

  it('keeps plugin and configuration on the host when the agent ends, and removes its socket', async () => {
    expect(await agent.stop()).toBe(0);
    expect(existsSync(served.conflist)).toBe(true);
    expect(existsSync(join(served.binDir, 'nodeplane-cni'))).toBe(true);
    expect(existsSync(served.socket)).toBe(false);
  });
});
