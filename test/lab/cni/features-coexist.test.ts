import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { attachmentKey, type ContainerId, type InterfaceName, type NetworkName } from '../../../src/cni/index.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { createFeatureWorld, elementsOf, type FeatureWorld, mapping } from './feature-world.ts';
import { callPlugin, type PluginJson } from './plugin.ts';

/** Debian's package containernetworking-plugins. */
const REFERENCE_PLUGINS = '/usr/lib/cni';
const PORT_8080 = mapping({ hostPort: 8080, containerPort: 80 });

let world: FeatureWorld;

beforeEach(() => {
  world = createFeatureWorld();
});

afterEach(removeAll);

describe("a Service's port", () => {
  it.each([
    ['iptables-nft', '-t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination'],
    ['iptables-legacy', '-t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination'],
  ])('wins over a host port of the same number, with %s', async (program, rule) => {
    const service = await world.addPod('service');
    await service.serve({ port: 80 });
    // Whichever is there first.
    const hostPort = await world.addPod('host-port', PORT_8080);
    await hostPort.serve({ port: 80 });
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 8080 })).toMatchObject({ by: 'host-port' });
    world.node.namespace.run(program, ...rule.split(' '), `${service.ip()}:80`);
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 8080 })).toMatchObject({ by: 'service' });
  });

  it('keeps its clients, and what kube-proxy masquerades stays masqueraded', async () => {
    const server = await world.addPod('server', PORT_8080);
    const client = await world.addPod('client', { ipMasq: true });
    await server.serve({ port: 80 });
    const nat = (...args: string[]) => world.node.namespace.run('iptables-nft', '-t', 'nat', ...args);
    // A Service address that leads to the pod that has a host port of the same number.
    nat(...'-A PREROUTING -d 10.96.0.1 -p tcp --dport 8081 -j DNAT --to-destination'.split(' '), `${server.ip()}:80`);
    nat(...'-A PREROUTING -d 10.96.0.2 -p tcp -j MARK --set-xmark 0x4000/0x4000'.split(' '));
    nat(...'-A PREROUTING -d 10.96.0.2 -p tcp --dport 8081 -j DNAT --to-destination'.split(' '), `${server.ip()}:80`);
    nat(...'-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE'.split(' '));
    world.outside.namespace.run('ip', 'route', 'add', '10.96.0.0/24', 'via', '192.0.2.1');
    expect(await world.outside.connect({ ip: '10.96.0.1', port: 8081 })).toMatchObject({ source: '192.0.2.2' });
    expect(await world.outside.connect({ ip: '10.96.0.2', port: 8081 })).toMatchObject({ source: '10.244.1.1' });
    expect(await client.connect({ ip: '10.96.0.2', port: 8081 })).toMatchObject({ source: '10.244.1.1' });
  });
});

describe('the reference plugins behind ours', () => {
  const call = async (type: string, command: string, containerId: string, config: object) => {
    const outcome = await callPlugin(world.node.namespace, {
      command,
      containerId,
      netns: `/run/netns/${containerId}`,
      config: { cniVersion: '1.0.0', name: 'net', type, ...config },
      program: `${REFERENCE_PLUGINS}/${type}`,
      env: { XTABLES_LOCKFILE: '/dev/null' },
    });
    if (outcome.status !== 0) throw new Error(`${type} ${command} failed: ${outcome.stdout}${outcome.stderr}`);
    return outcome.json;
  };

  it('portmap maps ports of its own, beside ours', async () => {
    const pod = await world.addPod('web', { cniVersion: '1.0.0', ...PORT_8080 });
    await pod.serve({ port: 80 });
    const config = { prevResult: pod.result, ...mapping({ hostPort: 9090, containerPort: 80, protocol: 'tcp' }) };
    await call('portmap', 'ADD', pod.namespace.name, config);
    for (const port of [8080, 9090]) {
      expect(await world.outside.connect({ ip: '192.0.2.1', port })).toMatchObject({ by: 'web' });
      expect(await world.nodeHost.connect({ ip: '127.0.0.1', port })).toMatchObject({ by: 'web' });
    }
    await call('portmap', 'DEL', pod.namespace.name, config);
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 9090 })).toMatchObject({ kind: 'refused' });
    await world.del(pod);
  });

  it('bandwidth limits with the result of ours', async () => {
    const pod = await world.addPod('web', { cniVersion: '1.0.0' });
    const limits = { ingressRate: 1e6, ingressBurst: 1e6, egressRate: 2e6, egressBurst: 1e6 };
    const config = { prevResult: pod.result, ...limits };
    const result = (await call('bandwidth', 'ADD', pod.namespace.name, config)) as PluginJson;
    expect(result.interfaces?.map(({ name }) => name).at(-1)).toMatch(/^bwp/);
    expect(world.node.namespace.run('tc', 'qdisc', 'show', 'dev', result.interfaces![1]!.name)).toContain('rate 1Mbit');
    await call('bandwidth', 'DEL', pod.namespace.name, config);
    await world.del(pod);
    expect(world.node.namespace.run('ip', '-br', 'link')).not.toContain('bwp');
  });
});

describe('an ADD that fails', () => {
  it('at the last feature takes the ones before it back', async () => {
    const namespace = createNamespace('pod');
    const key = attachmentKey('net' as NetworkName, {
      containerId: namespace.name as ContainerId,
      ifname: 'eth0' as InterfaceName,
    });
    // Something else has the name of the device that would limit what the pod sends.
    world.node.namespace.run('ip', 'link', 'add', key.hostName.replace('veth', 'ifb'), 'type', 'bridge');
    world.node.namespace.run('iptables-nft', '-P', 'FORWARD', 'DROP');
    const rules = world.node.namespace.run('iptables-nft', '-S');
    const change = { ipMasq: true, firewall: true, egressRate: 1e6, egressBurst: 1e6, ...PORT_8080 };
    const outcome = await world.call('ADD', namespace, change);
    expect(outcome).toMatchObject({ status: 1, json: { code: 105, msg: expect.stringContaining('EEXIST') } });
    expect(elementsOf(world.table(), namespace.name)).toEqual([]);
    expect(world.node.namespace.run('iptables-nft', '-S')).toBe(rules);
    expect(world.node.reservations()).toEqual([]);
    expect(namespace.run('ip', '-br', 'link')).not.toContain('eth0');
  });

  it('is all but one of those that want one port at once', async () => {
    const pods = Array.from({ length: 6 }, (_, i) => createNamespace(`rival-${i}`));
    const outcomes = await Promise.all(pods.map((pod) => world.call('ADD', pod, PORT_8080)));
    const winner = pods[outcomes.findIndex(({ status }) => status === 0)]!;
    const codes = outcomes.map(({ status, json }) => (status === 0 ? 0 : json?.code));
    expect(codes.sort()).toEqual([0, 103, 103, 103, 103, 103]);
    const holders = pods.filter((pod) => elementsOf(world.table(), pod.name).length > 0);
    expect(holders.map(({ name }) => name)).toEqual([winner.name]);
  });
});
