import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConfList, type LabNode, type Pod, removeAll } from '../lab.ts';
import { type Cluster, createCluster, FAMILIES, POD_PORT } from './cluster.ts';

// Packets through the tunnel are smaller than those of the network between the nodes (1450 bytes of 1500 in IPv4, 1430 in IPv6).

const TUNNEL_MTU = 1430;
/** Larger than what is sent to one pod at a time (the window), so that every size of packet occurs. */
const TRANSFER = 1_000_000;
/** Enough for several full packets. */
const SOME_PACKETS = 20_000;

let cluster: Cluster;
let nodes: readonly LabNode[];
/** With an MTU of 1500, which nobody has told about the tunnel; and with that of the tunnel. */
let unaware: readonly Pod[];
let aware: readonly Pod[];

beforeAll(async () => {
  cluster = await createCluster();
  nodes = [cluster.nodes[0], cluster.nodes[1]];
  unaware = [cluster.pods[0], cluster.pods[1]];
  aware = nodes.map((node) => node.addPod(`aware-${node.name}`, { conflist: withMtu(node.conflist, TUNNEL_MTU) }));
  for (const pod of aware) {
    await pod.serve({ port: POD_PORT });
    await pod.serve({ port: POD_PORT, protocol: 'UDP' });
  }
  await cluster.start('--routes', 'vxlan');
});
afterAll(async () => {
  await cluster.stop();
  removeAll();
});

function withMtu({ plugins, ...list }: ConfList, mtu: number): ConfList {
  return { ...list, plugins: plugins.map((plugin) => ({ ...plugin, mtu })) };
}

/** How many packets were made into fragments in a namespace, or put together from some, in both families. */
function fragments(namespace: Pod['namespace']): number {
  const text = namespace.run('nstat', '-asz', 'IpFragCreates', 'IpReasmReqds', 'Ip6FragCreates', 'Ip6ReasmReqds');
  return [...text.matchAll(/^Ip\S+ +(\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
}

describe.each(FAMILIES)('--routes vxlan, %s', (family) => {
  const connectionOf = async (pods: readonly Pod[]) => {
    const [from, to] = pods as [Pod, Pod];
    const target = { ip: to.ip(family), port: POD_PORT };
    await expect.poll(async () => (await from.connect(target, { timeoutMs: 1000 })).kind).toBe('answered');
    return await from.hold(target, { timeoutMs: 20_000 });
  };
  const everywhere = () => [...nodes, ...unaware, ...aware].map(({ namespace }) => fragments(namespace));

  it.each(['unaware', 'aware'] as const)('9,000 bytes in a datagram arrive and come back (%s pods)', async (which) => {
    const [from, to] = { unaware, aware }[which] as [Pod, Pod];
    const target = { ip: to.ip(family), port: POD_PORT, protocol: 'UDP' } as const;
    const before = everywhere();
    const outcome = async () => (await from.connect(target, { bytes: 9000, timeoutMs: 1000 })).kind;
    await expect.poll(outcome).toBe('answered');
    // Nothing else is possible here; and so it is seen that fragments are counted.
    expect(everywhere()).not.toEqual(before);
  });

  it.each(['unaware', 'aware'] as const)('a large transfer by TCP takes no fragments (%s pods)', async (which) => {
    const connection = await connectionOf({ unaware, aware }[which]);
    const before = everywhere();
    const echo = await connection.echo({ bytes: TRANSFER, timeoutMs: 30_000 });
    expect(echo).toMatchObject({ kind: 'answered' });
    expect(everywhere()).toEqual(before);
    await connection.close();
  });

  it('a large transfer by TCP arrives where a router on the way carries smaller packets than the nodes know of', async () => {
    const router = cluster.lab.wire.namespace;
    router.run('ip', 'link', 'set', 'wire60', 'mtu', '1400');
    const connection = await connectionOf([cluster.pods[0], cluster.pods[2]]);
    const echo = await connection.echo({ bytes: TRANSFER, timeoutMs: 30_000 });
    expect(echo).toMatchObject({ kind: 'answered' });
    await connection.close();
    router.run('ip', 'link', 'set', 'wire60', 'mtu', '1500');
  });

  describe('where a firewall drops the ICMP messages that tell a sender of the smaller MTU', () => {
    const table = family === 'IPv4' ? 'ip' : 'ip6';
    const tooBig =
      family === 'IPv4' ? 'icmp type destination-unreachable icmp code frag-needed' : 'icmpv6 type packet-too-big';

    beforeAll(() => {
      for (const pod of [...unaware, ...aware]) {
        // What pods have learned already is forgotten.
        pod.namespace.run('ip', family === 'IPv4' ? '-4' : '-6', 'route', 'flush', 'cache');
      }
      for (const { namespace } of nodes) {
        namespace.run(
          'nft',
          `table ${table} firewall { chain out { type filter hook output priority 0; ${tooBig} counter drop; }; }`,
        );
      }
    });
    afterAll(() => {
      for (const { namespace } of nodes) namespace.run('nft', 'delete', 'table', table, 'firewall');
    });

    it('pods with an MTU of 1500 can connect, and their large packets vanish', async () => {
      const connection = await connectionOf(unaware);
      expect(await connection.echo({ timeoutMs: 20_000 })).toMatchObject({ kind: 'answered' });
      const echo = await connection.echo({ bytes: SOME_PACKETS, timeoutMs: 1000 });
      expect(echo).toMatchObject({ kind: 'timeout' });
      expect(nodes[0]!.namespace.run('nft', 'list', 'table', table, 'firewall')).toMatch(/packets [1-9]/);
    });

    it('pods with the MTU of the tunnel notice nothing', async () => {
      const connection = await connectionOf(aware);
      const echo = await connection.echo({ bytes: TRANSFER, timeoutMs: 30_000 });
      expect(echo).toMatchObject({ kind: 'answered' });
      await connection.close();
    });
  });
});
