import { afterEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { createNode, linksOf, reaches, routesOf } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

describe('mode "routed"', () => {
  it('connects pods by routes alone, in both families', async () => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    // A node has an address somewhere, with which it speaks to pods.
    node.namespace.run('ip', 'address', 'add', '192.0.2.1/32', 'dev', 'lo');
    node.namespace.run('ip', 'link', 'set', 'lo', 'up');
    const config = node.config({ mode: 'routed' });
    const result = await node.add(pod, { config });
    await node.add(other, { config });

    expect(result.interfaces!.map(({ name }) => name)).toEqual([expect.stringMatching(/^veth/), 'eth0']);
    expect(result.ips).toEqual([
      { interface: 1, address: '10.244.1.2/32', gateway: '169.254.1.1' },
      { interface: 1, address: 'fd00:10:244:1::2/128', gateway: 'fe80::1' },
    ]);
    expect(result.routes).toMatchObject([
      { dst: '169.254.1.1/32', scope: 253 },
      { dst: '0.0.0.0/0', gw: '169.254.1.1' },
      { dst: '::/0', gw: 'fe80::1' },
    ]);
    expect(linksOf(node.namespace).filter(({ master }) => master)).toEqual([]);
    const [host] = result.interfaces!;
    expect(routesOf(node.namespace)).toEqual(
      expect.arrayContaining([`-4 10.244.1.2 dev ${host!.name}`, `-6 fd00:10:244:1::2 dev ${host!.name}`]),
    );
    expect(routesOf(pod)).toEqual(
      expect.arrayContaining([
        '-4 default via 169.254.1.1 dev eth0',
        '-4 169.254.1.1 dev eth0',
        '-6 default via fe80::1 dev eth0',
      ]),
    );
    for (const ip of ['10.244.1.3', 'fd00:10:244:1::3']) expect(reaches(pod, ip), ip).toBe(true);
    expect(reaches(node.namespace, '10.244.1.2')).toBe(true);
    const check = { command: 'CHECK', containerId: pod.name, netns: pod, config: { ...config, prevResult: result } };
    expect(await callPlugin(node.namespace, check)).toMatchObject({ status: 0 });

    node.namespace.run('ip', 'route', 'del', '10.244.1.2');
    expect((await callPlugin(node.namespace, check)).json!.msg).toContain('no route to 10.244.1.2');
    await node.del(pod, { config });
    await node.del(other, { config });
    expect(routesOf(node.namespace).filter((route) => route.includes('veth'))).toEqual([]);
    expect(node.reservations()).toEqual([]);
  });

  it('answers whoever asks for the gateway’s MAC all the same', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const uplink = createNamespace('uplink');
    node.namespace.run('ip', 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', 'up1', 'netns', uplink.name);
    node.namespace.run('ip', 'address', 'add', '192.0.2.1/24', 'dev', 'up0');
    node.namespace.run('ip', 'link', 'set', 'up0', 'up');
    uplink.run('ip', 'link', 'set', 'up1', 'up');
    node.namespace.run('ip', 'route', 'add', 'default', 'via', '192.0.2.2');
    const result = await node.add(pod, { config: node.config({ mode: 'routed' }) });
    for (const family of ['-4', '-6']) pod.run('ip', family, 'neigh', 'flush', 'nud', 'all', 'dev', 'eth0');
    expect(pod.run('ip', 'neigh', 'show', 'to', '169.254.1.1') + pod.run('ip', '-6', 'neigh', 'show')).toBe('');
    expect(reaches(pod, '192.0.2.1')).toBe(true);
    expect(pod.run('ip', 'neigh', 'show', '169.254.1.1')).toContain(result.interfaces![0]!.mac);
    await node.add(createNamespace('other'), { config: node.config({ mode: 'routed' }) });
    expect(reaches(pod, 'fd00:10:244:1::3')).toBe(true);
  });

  it('takes everything back when a step fails', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const before = linksOf(node.namespace);
    const config = node.config({ mode: 'routed' }, { routes: [{ dst: '10.1.0.0/16', table: 254, scope: 254 }] });
    const { status } = await callPlugin(node.namespace, { command: 'ADD', netns: pod, config });
    expect(status).toBe(1);
    expect(linksOf(node.namespace)).toEqual(before);
    expect(routesOf(node.namespace)).toEqual([]);
    expect(node.reservations()).toEqual([]);
  });
});
