import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type LabNode, type Pod, removeAll } from '../lab.ts';
import { builtProgram } from '../programs.ts';
import { ip } from '../wire.ts';
import { type Cluster, createCluster, FAMILIES, wayTo } from './cluster.ts';

let cluster: Cluster;
let [one, , three]: LabNode[] = [];
let [pod1, pod2, pod3]: Pod[] = [];

beforeAll(async () => {
  cluster = await createCluster();
  [one, , three] = cluster.nodes;
  [pod1, pod2, pod3] = cluster.pods;
});
afterAll(removeAll);

const answers = (from: Pod, to: Pod) =>
  expect.poll(() => Promise.all(FAMILIES.map((family) => cluster.ask(from, to, family))));
const bothFrom = (from: Pod, to: Pod) => FAMILIES.map((family) => `${to.name} saw ${from.ip(family)}`);
const tunnels = { IPv4: 'nodeplane-v4', IPv6: 'nodeplane-v6' };

describe('pods reach pods on other nodes, and are seen with their own addresses', () => {
  afterEach(() => cluster.stop());

  it('--routes vxlan: through the tunnel', async () => {
    await cluster.start('--routes', 'vxlan');
    for (const [from, to] of [
      [pod1!, pod2!],
      [pod2!, pod1!],
      [pod1!, pod3!],
      [pod3!, pod2!],
    ] as const) {
      await answers(from, to).toEqual(bothFrom(from, to));
    }
    for (const family of FAMILIES) expect(wayTo(one!, pod2!, family)).toBe(tunnels[family]);
  });

  it('--routes auto, after vxlan: directly on the link, through the tunnel where a router is between', async () => {
    const [agent] = await cluster.start('--routes', 'auto');
    for (const [from, to] of [
      [pod1!, pod2!],
      [pod2!, pod1!],
      [pod1!, pod3!],
      [pod3!, pod2!],
    ] as const) {
      await answers(from, to).toEqual(bothFrom(from, to));
    }
    for (const family of FAMILIES) {
      await expect
        .poll(() => [wayTo(one!, pod2!, family), wayTo(one!, pod3!, family)])
        .toEqual(['eth0', tunnels[family]]);
    }
    expect(await agent!.metrics()).toMatch(/^nodeplane_routes_peers\{ip_family="IPv4",way="direct"\} 1$/m);
  });

  it('--routes vxlan, after auto: what was direct goes through the tunnel', async () => {
    await cluster.start('--routes', 'vxlan');
    for (const family of FAMILIES) await expect.poll(() => wayTo(one!, pod2!, family)).toBe(tunnels[family]);
    await answers(pod1!, pod2!).toEqual(bothFrom(pod1!, pod2!));
  });

  it('--routes host-gw, after vxlan: a node behind a router is left out in words, and no device stays', async () => {
    const [agent] = await cluster.start('--routes', 'host-gw');
    await answers(pod1!, pod2!).toEqual(bothFrom(pod1!, pod2!));
    await expect.poll(() => one!.namespace.run('ip', '-o', 'link')).not.toContain('nodeplane-');
    const warning = { node: 'node-3', reason: expect.stringContaining('is not on the link of "eth0"') };
    expect(agent!.logs()).toContainEqual(expect.objectContaining(warning));
    expect(await cluster.ask(pod1!, pod3!, 'IPv4')).not.toContain('saw');
  });
});

describe('what others do to the kernel (--routes auto)', () => {
  beforeAll(async () => {
    await cluster.start('--routes', 'auto');
  });
  afterAll(() => cluster.stop());

  it.each([
    [
      'the device is deleted',
      (node: LabNode) => FAMILIES.map((family) => node.namespace.run('ip', 'link', 'delete', tunnels[family])),
    ],
    [
      'the device is switched off and on',
      (node: LabNode) =>
        FAMILIES.flatMap((family) =>
          ['down', 'up'].map((state) => node.namespace.run('ip', 'link', 'set', tunnels[family], state)),
        ),
    ],
    [
      'the device is switched off, and stays so',
      (node: LabNode) => FAMILIES.map((family) => node.namespace.run('ip', 'link', 'set', tunnels[family], 'down')),
    ],
    [
      'the routes are deleted',
      (node: LabNode) =>
        three!.podCidrs.map((cidr) =>
          node.namespace.run('ip', cidr.includes(':') ? '-6' : '-4', 'route', 'delete', cidr),
        ),
    ],
    ['all nexthop objects are flushed', (node: LabNode) => node.namespace.run('ip', 'nexthop', 'flush')],
    [
      'the neighbours are flushed',
      (node: LabNode) =>
        FAMILIES.map((family) =>
          node.namespace.run('ip', 'neighbour', 'flush', 'dev', tunnels[family], 'nud', 'permanent'),
        ),
    ],
  ])('%s: repaired at once', async (_, meddle) => {
    await answers(pod1!, pod3!).toEqual(bothFrom(pod1!, pod3!));
    meddle(one!);
    await answers(pod1!, pod3!).toEqual(bothFrom(pod1!, pod3!));
    expect(one!.namespace.run('bridge', 'fdb', 'show', 'dev', 'nodeplane-v4')).toContain('dst 192.168.60.');
  });

  it('the network between the nodes loses its carrier and has it again: repaired at once', async () => {
    await answers(pod1!, pod2!).toEqual(bothFrom(pod1!, pod2!));
    const wire = cluster.lab.wire.namespace;
    const ports = wire.run('ip', '-o', 'link').match(/port50-\d+/g)!;
    for (const port of ports) wire.run('ip', 'link', 'set', port, 'down');
    // The kernel removes nexthop objects without a carrier, and their routes with them.
    await expect.poll(() => one!.namespace.run('ip', 'nexthop', 'show', 'dev', 'eth0')).toBe('');
    for (const port of ports) wire.run('ip', 'link', 'set', port, 'up');
    await answers(pod1!, pod2!).toEqual(bothFrom(pod1!, pod2!));
  });

  it('the MTU of the tunnel follows that of the network between the nodes', async () => {
    const mtu = () =>
      FAMILIES.map((family) =>
        Number(/ mtu (\d+)/.exec(one!.namespace.run('ip', '-o', 'link', 'show', tunnels[family]))?.[1]),
      );
    await expect.poll(mtu).toEqual([1450, 1430]);
    one!.namespace.run('ip', 'link', 'set', 'eth0', 'mtu', '1400');
    await expect.poll(mtu).toEqual([1350, 1330]);
    one!.namespace.run('ip', 'link', 'set', 'eth0', 'mtu', '1500');
    await expect.poll(mtu).toEqual([1450, 1430]);
  });

  it('a node has another address all of a sudden: repaired when its Node object says so', async () => {
    const ips = ['192.168.60.33', 'fd00:60::33'];
    ip(three!.namespace, [
      'address flush dev eth0 scope global',
      ...['192.168.60.33/24', 'fd00:60::33/64'].map((address) => `address add ${address} dev eth0`),
      ...['192.168.60.254', 'fd00:60::fe'].map((gateway) => `route replace default via ${gateway}`),
    ]);
    cluster.tell(three!, { ips });
    await answers(pod1!, pod3!).toEqual(bothFrom(pod1!, pod3!));
    expect(one!.namespace.run('bridge', 'fdb', 'show', 'dev', 'nodeplane-v4')).toContain('dst 192.168.60.33');
  });
});

describe('what is not ours', () => {
  afterEach(() => cluster.stop());

  const routeTo = (node: LabNode, cidr: string) =>
    node.namespace.run('ip', cidr.includes(':') ? '-6' : '-4', 'route', 'show', cidr);

  it('routes and devices of others stay as they are', async () => {
    one!.namespace.run('ip', 'route', 'add', '10.99.0.0/24', 'via', '192.168.50.2');
    one!.namespace.run('ip', 'nexthop', 'add', 'id', '5', 'via', '192.168.50.2', 'dev', 'eth0');
    one!.namespace.run('ip', 'link', 'add', 'flannel.9', 'type', 'vxlan', 'id', '9', 'dstport', '8472', 'dev', 'eth0');
    const [agent] = await cluster.start('--routes', 'vxlan', '--routes-vni', '9');
    await expect
      .poll(() => JSON.stringify(agent!.logs()))
      .toContain('network 9 at port 8472 belongs to \\"flannel.9\\"');
    await cluster.stop();
    await cluster.start('--routes', 'host-gw');
    await answers(pod1!, pod2!).toEqual(bothFrom(pod1!, pod2!));
    expect(routeTo(one!, '10.99.0.0/24')).toContain('via 192.168.50.2');
    expect(one!.namespace.run('ip', 'nexthop')).toContain('id 5 via 192.168.50.2');
    expect(one!.namespace.run('ip', '-o', 'link')).toContain('flannel.9');
  });

  it('nodeplane cleanup --routes removes what is ours, and nothing else', async () => {
    await cluster.start('--routes', 'auto');
    await answers(pod1!, pod3!).toEqual(bothFrom(pod1!, pod3!));
    await cluster.stop();
    one!.namespace.run('ip', 'route', 'replace', '10.98.0.0/24', 'via', '192.168.50.2');
    const said = one!.namespace.run(builtProgram('nodeplane'), 'cleanup', '--routes');
    expect(said).toMatch(/^routes to other nodes \(IPv4\): \d+ objects removed$/m);
    for (const family of ['-4', '-6'])
      expect(one!.namespace.run('ip', family, 'route', 'show', 'proto', '78')).toBe('');
    expect(one!.namespace.run('ip', 'nexthop', 'show', 'proto', '78')).toBe('');
    expect(one!.namespace.run('ip', '-o', 'link')).not.toContain('nodeplane-');
    expect(routeTo(one!, '10.98.0.0/24')).toContain('via 192.168.50.2');
  });
});
