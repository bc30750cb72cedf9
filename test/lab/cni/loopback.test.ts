import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createFolder, createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { createNode, linksOf } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

const CONFIG = { cniVersion: '0.3.1', name: 'cni-loopback', type: 'loopback' };
const isUp = (pod: TestNamespace) => linksOf(pod)[0]!.flags.includes('UP');

describe.each(['by its type', 'by its name'])('the plugin asked for loopback %s', (how) => {
  const call = (node: TestNamespace, pod: TestNamespace | string, command: string, change: object = {}) => {
    const config = { ...CONFIG, type: how === 'by its type' ? 'loopback' : 'nodeplane-cni', ...change };
    const folder = createFolder('bin').path;
    symlinkSync(builtProgram('nodeplane-cni'), join(folder, 'loopback'));
    const program = how === 'by its name' ? join(folder, 'loopback') : builtProgram('nodeplane-cni');
    return callPlugin(node, { command, netns: pod, config, program });
  };

  it('switches it on, checks it, and switches it off', async () => {
    const { namespace } = createNode();
    const pod = createNamespace('pod');
    const { status, json } = await call(namespace, pod, 'ADD');
    expect(status).toBe(0);
    expect(json).toEqual({
      cniVersion: '0.3.1',
      interfaces: [{ name: 'lo', mac: '00:00:00:00:00:00', sandbox: pod.path }],
      ips: [
        { version: '4', interface: 0, address: '127.0.0.1/8' },
        { version: '6', interface: 0, address: '::1/128' },
      ],
      routes: [],
      dns: {},
    });
    expect(isUp(pod)).toBe(true);
    expect(linksOf(namespace)).toHaveLength(1);
    const newer = { cniVersion: '1.0.0', prevResult: json };
    expect(await call(namespace, pod, 'CHECK', newer)).toMatchObject({ status: 0, stdout: '' });
    expect(await call(namespace, pod, 'DEL')).toMatchObject({ status: 0, stdout: '' });
    expect(isUp(pod)).toBe(false);
    expect((await call(namespace, pod, 'CHECK', newer)).json).toMatchObject({ code: 108 });
    expect(await call(namespace, '/run/netns/nodeplane-not-there', 'DEL')).toMatchObject({ status: 0 });
  });

  it('passes on the result of the plugins before it', async () => {
    const { namespace } = createNode();
    const prevResult = { cniVersion: '0.2.0', ip4: { ip: '10.1.0.2/24', gateway: '10.1.0.1' } };
    const { json } = await call(namespace, createNamespace('pod'), 'ADD', { cniVersion: '1.0.0', prevResult });
    expect(json).toEqual({
      cniVersion: '1.0.0',
      interfaces: [],
      ips: [{ address: '10.1.0.2/24', gateway: '10.1.0.1' }],
      routes: [],
    });
  });

  it('leaves the node’s own alone', async () => {
    const { namespace } = createNode();
    expect((await call(namespace, namespace, 'ADD')).json).toMatchObject({ code: 8 });
    expect(isUp(namespace)).toBe(false);
  });
});
