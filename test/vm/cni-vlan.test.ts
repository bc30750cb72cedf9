import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFeatureWorld, type FeatureWorld, mapping } from '../lab/cni/feature-world.ts';
import { linksOf } from '../lab/cni/fixture.ts';
import { createNamespace, removeAll, type TestNamespace } from '../lab/namespace.ts';

// Here, because it takes a kernel whose bridges look at VLANs.

const VLAN = { vlan: 100, ipMasq: true, macspoofchk: true };

let world: FeatureWorld;

beforeEach(() => {
  world = createFeatureWorld();
});

afterEach(removeAll);

const run: TestNamespace['run'] = (...args) => world.node.namespace.run(...args);
const linkNamed = (name: string) => linksOf(world.node.namespace).find(({ ifname }) => ifname === name);

describe('a VLAN with a gateway', () => {
  it('has it on a link of its own, through which its pods reach everybody', async () => {
    const pod = await world.addPod('pod', { ...VLAN, ...mapping({ hostPort: 8080, containerPort: 80 }) });
    const neighbour = await world.addPod('neighbour', VLAN);
    const untagged = await world.addPod('untagged', { isGateway: false });
    expect(linkNamed('cni0.100')).toMatchObject({ addresses: ['10.244.1.1/24', 'fd00:10:244:1::1/64'], mtu: 1500 });
    expect(linkNamed('cni0')!.addresses).toEqual([]);
    expect(pod.result.interfaces!.map(({ name }) => name)).toEqual([
      'cni0',
      expect.stringMatching(/^veth/),
      'eth0',
      'cni0.100',
    ]);
    for (const host of [pod, neighbour, world.outside, world.nodeHost]) await host.serve({ port: 80 });
    for (const family of ['IPv4', 'IPv6'] as const) {
      const targets = [world.nodeHost.ip(family), neighbour.ip(family), world.outside.ip(family)];
      for (const ip of targets) expect(await pod.connect({ ip, port: 80 })).toMatchObject({ kind: 'answered' });
      expect(await world.nodeHost.connect({ ip: pod.ip(family), port: 80 })).toMatchObject({ by: 'pod' });
    }
    // Addresses of one subnet, but not one VLAN.
    expect(await untagged.connect({ ip: pod.ip(), port: 80 }, { timeoutMs: 1000 })).not.toMatchObject({ by: 'pod' });
    for (const client of [world.outside, pod]) {
      expect(await client.connect({ ip: '192.0.2.1', port: 8080 })).toMatchObject({ by: 'pod' });
    }
    expect(await world.nodeHost.connect({ ip: '127.0.0.1', port: 8080 })).toMatchObject({ by: 'pod' });

    pod.namespace.run('ip', 'link', 'set', 'eth0', 'address', '0a:00:00:00:00:99');
    world.nodeHost.namespace.run('ip', 'neigh', 'flush', 'all');
    const spoofed = await pod.connect({ ip: world.nodeHost.ip(), port: 80 }, { timeoutMs: 1000 });
    expect(spoofed.kind).not.toBe('answered');
  });

  it('is one of several on a bridge, and stays with it', async () => {
    const first = await world.addPod('first', VLAN);
    const other = {
      name: 'other',
      vlan: 200,
      ipam: { type: 'host-local', subnet: '10.245.1.0/24', dataDir: world.node.dataDir },
    };
    const second = await world.addPod('second', other);
    expect(linkNamed('cni0.200')!.addresses).toEqual(['10.245.1.1/24']);
    await second.serve({ port: 80 });
    expect(await first.connect({ ip: second.ip(), port: 80 })).toMatchObject({ by: 'second' });
    await world.del(first, VLAN);
    await world.del(second, other);
    run('ip', 'link', 'del', 'cni0');
    expect(linkNamed('cni0.100') ?? linkNamed('cni0.200')).toBeUndefined();
  });

  it('is checked', async () => {
    const pod = await world.addPod('pod', VLAN);
    const check = async () => (await world.call('CHECK', pod.namespace, { ...VLAN, prevResult: pod.result })).json?.msg;
    expect(await check()).toBeUndefined();
    run('bridge', 'vlan', 'del', 'dev', 'cni0', 'vid', '100', 'self');
    expect(await check()).toContain('bridge "cni0" itself is no member of VLAN 100');
    run('ip', 'address', 'del', '10.244.1.1/24', 'dev', 'cni0.100');
    expect(await check()).toContain('gateway "cni0.100" lacks the address 10.244.1.1/24');
    // The next pod brings both back.
    await world.addPod('next', VLAN);
    expect(await check()).toBeUndefined();
    run('ip', 'link', 'del', 'cni0.100');
    expect(await check()).toContain('there is no gateway "cni0.100"');
  });

  it('is taken back by an ADD that fails, and refused where something else has its name', async () => {
    const before = linksOf(world.node.namespace);
    // Refused when all but the port is set up.
    const pod = createNamespace('pod');
    const shaped = { ...VLAN, ...mapping({ hostPort: 1, containerPort: 1, hostIP: '::1' }) };
    expect(await world.call('ADD', pod, shaped)).toMatchObject({ status: 1, json: { code: 2 } });
    expect(linksOf(world.node.namespace)).toEqual(before);

    await world.addPod('first', { isGateway: false });
    expect(await world.call('ADD', pod, shaped)).toMatchObject({ status: 1, json: { code: 2 } });
    expect(linkNamed('cni0.100')).toBeUndefined();
    run('ip', 'link', 'add', 'cni0.100', 'type', 'bridge');
    expect(await world.call('ADD', pod, VLAN)).toMatchObject({
      status: 1,
      json: {
        code: 106,
        msg: expect.stringContaining('Link "cni0.100" exists and is not VLAN 100 of the bridge "cni0"'),
      },
    });
  });

  it('is the one that the reference plugin made, where there is one', async () => {
    run('ip', 'link', 'add', 'cni0', 'up', 'type', 'bridge', 'vlan_filtering', '1', 'forward_delay', '0');
    run('ip', 'link', 'add', 'cni0.100', 'up', 'type', 'veth', 'peer', 'name', 'vethgw');
    run('ip', 'link', 'set', 'vethgw', 'up', 'master', 'cni0');
    run('bridge', 'vlan', 'add', 'dev', 'vethgw', 'vid', '100', 'pvid', 'untagged');
    const pod = await world.addPod('pod', VLAN);
    await world.nodeHost.serve({ port: 80 });
    expect(linkNamed('cni0.100')!.addresses).toContain('10.244.1.1/24');
    expect(await pod.connect({ ip: '10.244.1.1', port: 80 })).toMatchObject({ kind: 'answered' });
    expect(await world.call('CHECK', pod.namespace, { ...VLAN, prevResult: pod.result })).toMatchObject({ status: 0 });
  });
});
