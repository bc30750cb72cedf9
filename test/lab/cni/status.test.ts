import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { createNode, snapshot } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

const small = { ranges: [[{ subnet: '10.7.0.0/30' }]] };

describe('STATUS', () => {
  it('succeeds on a bare node and on one with pods, and changes nothing', async () => {
    const node = createNode();
    const status = () => callPlugin(node.namespace, { command: 'STATUS', config: node.config() });
    const bare = snapshot([node.namespace], node.dataDir);
    expect(await status()).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect(snapshot([node.namespace], node.dataDir)).toEqual(bare);
    await node.add(createNamespace('pod'));
    const used = snapshot([node.namespace], node.dataDir);
    expect(await status()).toMatchObject({ status: 0, stdout: '' });
    expect(snapshot([node.namespace], node.dataDir)).toEqual(used);
  });

  it('is 50 when no address is left, until one could be given back', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const config = node.config({}, small);
    const status = () => callPlugin(node.namespace, { command: 'STATUS', config });
    await node.add(pod, { config });
    expect((await status()).json).toMatchObject({
      code: 50,
      msg: expect.stringContaining('no IP addresses available in range set: 10.7.0.1-10.7.0.2, 1 in use'),
    });
    pod.remove();
    await expect.poll(async () => (await status()).status).toBe(0);
  });

  it('is 50 when the bridge cannot be used', async () => {
    const node = createNode();
    node.namespace.run('ip', 'link', 'add', 'cni0', 'type', 'bridge');
    node.namespace.run('ip', 'address', 'add', '10.99.0.1/16', 'dev', 'cni0');
    const { json } = await callPlugin(node.namespace, { command: 'STATUS', config: node.config() });
    expect(json).toMatchObject({ code: 50, msg: expect.stringContaining('10.99.0.1/16') });
  });

  it('is 50 when reservations cannot be written', async () => {
    const node = createNode();
    writeFileSync(join(node.dataDir, 'net'), 'a file');
    const { json } = await callPlugin(node.namespace, { command: 'STATUS', config: node.config() });
    expect(json).toMatchObject({ code: 50, msg: expect.stringContaining('it is not writable') });
    mkdirSync(join(node.dataDir, 'other'));
    const other = node.config({ name: 'other' });
    expect(await callPlugin(node.namespace, { command: 'STATUS', config: other })).toMatchObject({ status: 0 });
  });

  it('is 51 when pods have lost their bridge', async () => {
    const node = createNode();
    await node.add(createNamespace('pod'));
    node.namespace.run('ip', 'link', 'del', 'cni0');
    const { json } = await callPlugin(node.namespace, { command: 'STATUS', config: node.config() });
    expect(json).toMatchObject({ code: 51, msg: expect.stringMatching(/^1 pods of network "net" are not connected/) });
  });

  it('is none of 51 for the device that limits a pod’s traffic, nor for one pod among others that was unplugged', async () => {
    const node = createNode();
    const bandwidth = { egressRate: 8e6, egressBurst: 8e5, ingressRate: 8e6, ingressBurst: 8e5 };
    const limited = { config: node.config({ runtimeConfig: { bandwidth } }) };
    const pods = [await node.add(createNamespace('pod'), limited), await node.add(createNamespace('other'), limited)];
    const status = () => callPlugin(node.namespace, { command: 'STATUS', config: node.config() });
    expect(await status()).toMatchObject({ status: 0, stdout: '' });
    const unplug = (i: number) => node.namespace.run('ip', 'link', 'set', pods[i]!.interfaces![1]!.name, 'nomaster');
    unplug(0);
    expect(await status()).toMatchObject({ status: 0, stdout: '' });
    unplug(1);
    expect((await status()).json).toMatchObject({ code: 51, msg: expect.stringMatching(/^2 pods of network "net" /) });
  });

  it('is the error of the configuration when that cannot be used, and names keys without effect', async () => {
    const node = createNode();
    const status = (change: object) => callPlugin(node.namespace, { command: 'STATUS', config: node.config(change) });
    expect((await status({ mtu: 'x' })).json).toMatchObject({ code: 7 });
    expect((await status({ colour: 1 })).stderr).toContain('Key "colour" is not known');
  });
});
