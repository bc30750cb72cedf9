import { afterEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { createNode, linksOf, reaches, snapshot } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

/** The kernel refuses this route, after everything else was done. */
const UNREACHABLE = { routes: [{ dst: '10.20.0.0/16' }, { dst: '10.30.0.0/16', gw: '192.168.200.1' }] };

describe('a step that fails takes the steps before it back', () => {
  it('of the first ADD on a node: the bridge is gone again', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    pod.run('sysctl', '-qw', 'net.ipv6.conf.lo.disable_ipv6=1');
    const config = node.config({}, UNREACHABLE);
    const before = snapshot([node.namespace, pod], node.dataDir);
    const { status, json, stderr } = await callPlugin(node.namespace, { command: 'ADD', netns: pod, config });
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' });
    expect(json).toMatchObject({
      code: 105,
      msg: expect.stringMatching(/RTM_NEWROUTE 10\.30\.0\.0\/16 via 192\.168\.200\.1.*ENETUNREACH/),
    });
    // The network's directory stays, with its lock and the place in the round: another ADD may be waiting for the lock.
    expect(node.reservations()).toEqual([]);
    const after = snapshot([node.namespace, pod], node.dataDir);
    expect({ ...after, files: {} }).toEqual({ ...before, files: {} });
  });

  it('of a later ADD: the bridge and the other pod stay as they were', async () => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    await node.add(pod);
    const before = snapshot([node.namespace, pod, other], node.dataDir) as { files: object };
    const reserved = node.reservations();
    const { json } = await callPlugin(node.namespace, {
      command: 'ADD',
      containerId: other.name,
      netns: other,
      config: node.config({}, UNREACHABLE),
    });
    expect(json?.code).toBe(105);
    const after = snapshot([node.namespace, pod, other], node.dataDir) as { files: object };
    expect({ ...after, files: {} }).toEqual({ ...before, files: {} });
    expect(node.reservations()).toEqual(reserved);
    expect(reaches(pod, '10.244.1.1')).toBe(true);
  });

  it('of an ADD that replaced the address of the bridge: the old one is back', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    node.namespace.run('ip', 'link', 'add', 'cni0', 'type', 'bridge');
    node.namespace.run('ip', 'address', 'add', '10.99.0.1/16', 'dev', 'cni0');
    const before = linksOf(node.namespace);
    const config = node.config({ forceAddress: true }, UNREACHABLE);
    const { json } = await callPlugin(node.namespace, { command: 'ADD', netns: pod, config });
    expect(json?.code).toBe(105);
    expect(linksOf(node.namespace)).toEqual(before);
  });

  it('and the attempt can be repeated', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    await callPlugin(node.namespace, {
      command: 'ADD',
      containerId: pod.name,
      netns: pod,
      config: node.config({}, UNREACHABLE),
    });
    const result = await node.add(pod);
    expect(result.ips!.map(({ address }) => address)).toEqual(['10.244.1.3/24', 'fd00:10:244:1::3/64']);
  });
});
