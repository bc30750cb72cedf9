import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeAll } from '../namespace.ts';
import { createFeatureWorld, elementsOf, type FeaturePod, type FeatureWorld, mapping } from './feature-world.ts';

const FAMILIES = ['IPv4', 'IPv6'] as const;
const MAPPINGS = mapping(
  { hostPort: 8080, containerPort: 80 },
  // As containerd writes it.
  { HostPort: 5353, ContainerPort: 53, Protocol: 'UDP', HostIP: '' },
  { hostPort: 8081, containerPort: 80, hostIP: '192.0.2.3' },
);

let world: FeatureWorld;
let web: FeaturePod;
let neighbour: FeaturePod;

beforeAll(async () => {
  world = createFeatureWorld();
  web = await world.addPod('web', MAPPINGS);
  neighbour = await world.addPod('neighbour');
  await web.serve({ port: 80 });
  await web.serve({ port: 53, protocol: 'UDP' });
});

afterAll(removeAll);

describe('a mapped port', () => {
  it.each(FAMILIES)('leads an outside client to the pod, which sees it, %s', async (family) => {
    const ip = world.nodeHost.ip(family);
    const expected = { kind: 'answered', by: 'web', source: world.outside.ip(family) };
    expect(await world.outside.connect({ ip, port: 8080 })).toMatchObject(expected);
    expect(await world.outside.connect({ ip, port: 5353, protocol: 'UDP' })).toMatchObject(expected);
  });

  it.each(FAMILIES)('leads the pod to itself, %s', async (family) => {
    const ip = world.nodeHost.ip(family);
    expect(await web.connect({ ip, port: 8080 })).toMatchObject({ kind: 'answered', by: 'web' });
    expect(await web.connect({ ip, port: 5353, protocol: 'UDP' })).toMatchObject({ kind: 'answered', by: 'web' });
  });

  it.each(FAMILIES)('leads a pod of the same bridge there, %s', async (family) => {
    const outcome = await neighbour.connect({ ip: world.nodeHost.ip(family), port: 8080 });
    expect(outcome).toMatchObject({ kind: 'answered', by: 'web' });
  });

  it.each(FAMILIES)('leads programs of the node there, %s', async (family) => {
    const outcome = await world.nodeHost.connect({ ip: world.nodeHost.ip(family), port: 8080 });
    expect(outcome).toMatchObject({ kind: 'answered', by: 'web' });
  });

  it('leads programs of the node there over 127.0.0.1, and not over ::1', async () => {
    expect(await world.nodeHost.connect({ ip: '127.0.0.1', port: 8080 })).toMatchObject({ by: 'web' });
    expect(await world.nodeHost.connect({ ip: '127.0.0.1', port: 5353, protocol: 'UDP' })).toMatchObject({ by: 'web' });
    expect(await world.nodeHost.connect({ ip: '::1', port: 8080 })).toMatchObject({ kind: 'refused' });
  });

  it('of one address leads nowhere on others', async () => {
    expect(await world.outside.connect({ ip: '192.0.2.3', port: 8081 })).toMatchObject({ by: 'web' });
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 8081 })).toMatchObject({ kind: 'refused' });
    expect(await world.nodeHost.connect({ ip: '127.0.0.1', port: 8081 })).toMatchObject({ kind: 'refused' });
  });

  it('is of no effect on what goes through the node', async () => {
    await world.outside.serve({ port: 8080 });
    const pod = await world.addPod('client', { ipMasq: true });
    expect(await pod.connect({ ip: world.outside.ip(), port: 8080 })).toMatchObject({ by: 'outside' });
    await world.del(pod);
  });

  it('does not open the loopback of the node to pods', async () => {
    await world.nodeHost.serve({ port: 9999, ip: '127.0.0.1' });
    const { namespace } = neighbour;
    namespace.run('ip', 'rule', 'add', 'pref', '5', 'to', '127.0.0.1', 'lookup', '77');
    namespace.run('ip', 'rule', 'add', 'pref', '10', 'lookup', 'local');
    namespace.run('ip', 'rule', 'del', 'pref', '0');
    namespace.run('ip', 'route', 'add', '127.0.0.1', 'via', '10.244.1.1', 'dev', 'eth0', 'table', '77');
    for (const link of ['all', 'eth0']) namespace.run('sysctl', '-qw', `net.ipv4.conf.${link}.route_localnet=1`);
    const sourceIp = neighbour.ip();
    const reach = () => neighbour.connect({ ip: '127.0.0.1', port: 9999 }, { timeoutMs: 500, sourceIp });
    expect((await reach()).kind).toBe('timeout');
    // Without the rule it would.
    world.node.namespace.run('nft', 'flush', 'chain', 'inet', 'nodeplane-cni', 'localnet');
    expect(await reach()).toMatchObject({ kind: 'answered', by: 'node' });
    await world.del(await world.addPod('other', mapping({ hostPort: 8088, containerPort: 80 })));
    expect((await reach()).kind).toBe('timeout');
  });

  it('can be read by people', () => {
    const lines = elementsOf(world.table(), web.namespace.name).map((line) =>
      line.replace(/"veth\w+ .*"/, '"…"').trim(),
    );
    expect(world.table()).toContain('dnat ip to meta l4proto . th dport map @ports-ipv4');
    expect(lines.join('\n')).toContain('tcp . 8080 comment "…" : 10.244.1.');
  });
});

describe('two for one port', () => {
  it('are refused, with the name of the first', async () => {
    const rival = await world.addPod('rival');
    const { namespace } = rival;
    await world.del(rival);
    const outcome = await world.call('ADD', namespace, mapping({ hostPort: 8080, containerPort: 81 }));
    expect(outcome.status).toBe(1);
    expect(outcome.json).toMatchObject({
      code: 103,
      msg: `Host port 8080/tcp (IPv4) is in use by attachment "net/${web.namespace.name}/eth0"`,
    });
    expect(elementsOf(world.table(), namespace.name)).toEqual([]);
    expect(world.node.reservations()).toHaveLength(4);
    expect(namespace.run('ip', '-br', 'link')).not.toContain('eth0');
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 8080 })).toMatchObject({ by: 'web' });
  });

  it('share it when one of them has it on one address, which then wins there', async () => {
    const special = await world.addPod('special', mapping({ hostPort: 8080, containerPort: 80, hostIP: '192.0.2.3' }));
    await special.serve({ port: 80 });
    expect(await world.outside.connect({ ip: '192.0.2.3', port: 8080 })).toMatchObject({ by: 'special' });
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 8080 })).toMatchObject({ by: 'web' });
    await world.del(special);
    expect(await world.outside.connect({ ip: '192.0.2.3', port: 8080 })).toMatchObject({ by: 'web' });
  });

  it('do not get in the way of each other when the first vanished without DEL', async () => {
    const ports = mapping({ hostPort: 8090, containerPort: 80 });
    const gone = await world.addPod('gone', ports);
    world.node.namespace.run('ip', 'link', 'del', gone.result.interfaces![1]!.name);
    const heir = await world.addPod('heir', ports);
    await heir.serve({ port: 80 });
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 8090 })).toMatchObject({ by: 'heir' });
    await world.del(gone);
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 8090 })).toMatchObject({ by: 'heir' });
    await world.del(heir);
  });
});

describe('UDP flows', () => {
  it('follow the port to a new pod, and end with it', async () => {
    const ports = mapping({ hostPort: 5454, containerPort: 53, protocol: 'udp' });
    const target = { ip: '192.0.2.1', port: 5454, protocol: 'UDP' as const };
    const ask = () => world.outside.connect(target, { sourcePort: 40_000 });
    // The flow begins before there is a mapping.
    expect((await ask()).kind).not.toBe('answered');
    for (const name of ['first', 'second']) {
      const pod = await world.addPod(name, ports);
      await pod.serve({ port: 53, protocol: 'UDP' });
      expect(await ask()).toMatchObject({ kind: 'answered', by: name });
      await world.del(pod);
      const flows = world.node.namespace.run('bash', '-c', 'conntrack -L -p udp --dport 5454 2>/dev/null || true');
      expect(flows).toBe('');
    }
  });
});

describe('what may happen to an attachment', () => {
  it('is checked', async () => {
    const check = () => world.call('CHECK', web.namespace, { ...MAPPINGS, prevResult: web.result });
    expect(await check()).toMatchObject({ status: 0 });
    const { namespace } = world.node;
    namespace.run('nft', 'delete', 'element', 'inet', 'nodeplane-cni', 'ports-ipv4', '{ tcp . 8080 }');
    expect((await check()).json?.msg).toContain('Host port 8080/tcp (IPv4) does not lead to the pod');
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 8080 })).toMatchObject({ kind: 'refused' });
  });

  it('answers pods of the same bridge only because they are masqueraded', async () => {
    const ask = () => neighbour.connect({ ip: '2001:db8::1', port: 8080 });
    expect((await ask()).kind).toBe('answered');
    world.node.namespace.run('nft', 'flush', 'set', 'inet', 'nodeplane-cni', 'hairpin-ipv6');
    expect((await ask()).kind).toBe('timeout');
  });

  it('GC removes what belongs to no valid attachment of the network', async () => {
    const stale = await world.addPod('stale', mapping({ hostPort: 8099, containerPort: 80 }));
    const valid = [web, neighbour].map(({ namespace }) => ({ containerID: namespace.name, ifname: 'eth0' }));
    const before = elementsOf(world.table(), web.namespace.name);
    const config = { 'cni.dev/valid-attachments': valid, name: 'elsewhere' };
    expect(await world.call('GC', stale.namespace, config)).toMatchObject({ status: 0 });
    expect(elementsOf(world.table(), stale.namespace.name)).not.toEqual([]);
    expect(await world.call('GC', stale.namespace, { ...config, name: 'net' })).toMatchObject({ status: 0 });
    expect(elementsOf(world.table(), stale.namespace.name)).toEqual([]);
    expect(elementsOf(world.table(), web.namespace.name)).toEqual(before);
  });

  it('DEL leaves nothing, whatever the configuration is by then, and again', async () => {
    await world.del(web);
    await world.del(web);
    expect(elementsOf(world.table(), web.namespace.name)).toEqual([]);
    expect(await world.outside.connect({ ip: '192.0.2.1', port: 5353, protocol: 'UDP' })).toMatchObject({
      kind: 'refused',
    });
  });
});

describe('what cannot be done', () => {
  it.each([
    [{ ...mapping({ hostPort: 1, containerPort: 1 }), conditionsV4: ['ip', 'saddr', '10.0.0.0/8'] }, 'conditionsV4'],
    [mapping({ hostPort: 1, containerPort: 1, hostIP: '::1' }), 'hostIP'],
  ])('is refused: %o', async (change, key) => {
    const pod = neighbour.namespace;
    await world.del(neighbour);
    const outcome = await world.call('ADD', pod, change);
    expect(outcome.json).toMatchObject({ code: 2, msg: expect.stringContaining(`"${key}"`) });
    expect(pod.run('ip', '-br', 'link')).not.toContain('eth0');
  });
});
