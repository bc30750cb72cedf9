import { spawnSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type LabNode, type Pod, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { type Cluster, createCluster, FAMILIES } from './cluster.ts';

/** Each look is a process of its own. */
const LONG_MS = patient(300_000);

let cluster: Cluster;
let [one, two]: LabNode[] = [];
let [pod1, pod2, pod3]: Pod[] = [];

beforeAll(async () => {
  cluster = await createCluster();
  [one, two] = cluster.nodes;
  [pod1, pod2, pod3] = cluster.pods;
});
afterEach(() => cluster.stop());
afterAll(removeAll);

/** Runs `nodeplane routes` on the first node. */
function routes(...flags: string[]) {
  const program = builtProgram('nodeplane');
  const args = ['netns', 'exec', one!.namespace.name, program, 'routes', ...flags];
  const { status, stdout, stderr } = spawnSync('ip', args, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

interface Shown {
  readonly peers: readonly Readonly<Record<string, unknown>>[];
  readonly leftOut: readonly object[];
  readonly drift: readonly string[];
  readonly problems: readonly string[];
}

const json = () => {
  const { status, stdout, stderr } = routes('-o', 'json');
  return { status, stderr, ...(JSON.parse(stdout) as Shown) };
};

/** Sends from the first node's pod to both others, until they have answered in both families. */
async function reachAll(): Promise<void> {
  for (const pod of [pod2!, pod3!]) {
    for (const family of FAMILIES) {
      await expect.poll(() => cluster.ask(pod1!, pod, family)).toBe(`${pod.name} saw ${pod1!.ip(family)}`);
    }
  }
}

describe('nodeplane routes', () => {
  it(
    'shows the way to each Node as the kernel has it, with what the agent knows',
    async () => {
      await cluster.start('--routes', 'auto');
      await reachAll();
      const { status, stderr, peers, leftOut, drift, problems } = json();
      expect({ status, stderr, leftOut, drift, problems }).toEqual({
        status: 0,
        stderr: '',
        leftOut: [],
        drift: [],
        problems: [],
      });
      const direct = { node: 'node-2', mode: 'direct', device: 'eth0', mtu: 1500, reachable: 'yes' };
      const tunnel = { node: 'node-3', mode: 'tunnel' };
      expect(peers).toMatchObject([
        { ...direct, family: 'IPv4', gateway: '192.168.50.2', address: '192.168.50.2', podCidrs: ['10.244.2.0/24'] },
        { ...direct, family: 'IPv6', gateway: 'fd00:50::2', address: 'fd00:50::2', podCidrs: ['fd00:10:244:2::/64'] },
        {
          ...tunnel,
          family: 'IPv4',
          device: 'nodeplane-v4',
          gateway: '10.244.3.0',
          address: '192.168.60.3',
          mtu: 1450,
        },
        { ...tunnel, family: 'IPv6', device: 'nodeplane-v6', address: 'fd00:60::3', mtu: 1430, reachable: 'unknown' },
      ]);
      expect(Date.now() - Date.parse(String(peers[0]!.lastChange))).toBeLessThan(600_000);
      const { stdout } = routes();
      expect(stdout).toMatch(
        /^4 peers, 2 direct, 2 tunnel, 0 wireguard, 0 not reachable, 0 left out, 0 drift\n\nNODE +MODE /,
      );
      expect(stdout).toMatch(/^node-2 +direct +eth0 +192\.168\.50\.2 .* yes \(neighbour \w+\)$/m);
    },
    LONG_MS,
  );

  it(
    'names who is left out, why, and ends with status 2',
    async () => {
      await cluster.start('--routes', 'host-gw');
      await expect.poll(() => json().leftOut.length).toBe(2);
      const { status, stdout } = routes();
      expect(status).toBe(2);
      expect(stdout).toMatch(/^LEFT OUT\n {2}node-3 \(IPv4\): .*is not on the link of "eth0"/m);
      expect(json().drift).toEqual([]);
    },
    LONG_MS,
  );

  it(
    'and the status name a route of somebody else that takes a part of a Node’s pods away',
    async () => {
      await cluster.start('--routes', 'auto');
      await reachAll();
      const { run } = one!.namespace;
      run('sh', '-ec', 'ip route add blackhole 10.244.2.0/26 proto 80; ip -6 route add fd00:10:244:3::/80 dev eth0');
      const blocked = () =>
        json().peers.flatMap(({ family, node, reachable }) => (reachable === 'no' ? [`${family} ${node}`] : []));
      expect(blocked()).toEqual(['IPv4 node-2', 'IPv6 node-3']);
      expect(routes().stdout).toContain(
        '10.244.2.0/26 goes the way of somebody else’s route: ip route show 10.244.2.0/26',
      );
      const status = one!.namespace.run('sh', '-c', `${builtProgram('nodeplane')} status || true`);
      expect(status).toContain('node-3, IPv6: fd00:10:244:3::/80 goes the way of somebody else’s route');
      run('sh', '-ec', 'ip route del blackhole 10.244.2.0/26; ip -6 route del fd00:10:244:3::/80');
      expect(blocked()).toEqual([]);
    },
    LONG_MS,
  );

  it.each([
    ['IPv4', 'somebody else has 10.244.2.0/24 (ip route show 10.244.2.0/24); remove it if it is not needed'],
    [
      'IPv6',
      'leads to fd00:10:244:2:: by another link (ip -6 route get fd00:10:244:2::); remove that if it is not needed',
    ],
  ])(
    'names a route of somebody else that is in the way of the tunnel: %s',
    async (family, told) => {
      const [range, gateway] =
        family === 'IPv4' ? ['10.244.2.0/24', two!.ip()] : ['fd00:10:244:2::/64', two!.ip('IPv6')];
      one!.namespace.run('ip', 'route', 'replace', range, 'via', gateway);
      await cluster.start('--routes', 'vxlan');
      await expect.poll(() => routes().stdout).toContain(`node-2 (${family}): `);
      expect(routes().stdout).toContain(told);
      one!.namespace.run('ip', 'route', 'del', range, 'via', gateway);
    },
    LONG_MS,
  );

  it(
    'shows what the kernel holds when no agent runs, and what is broken in it',
    async () => {
      await cluster.start('--routes', 'vxlan');
      await reachAll();
      await cluster.stop();
      const { status, stderr, peers } = json();
      expect(status).toBe(0);
      expect(stderr).toMatch(
        /^nodeplane: Cannot ask the agent at 127\.0\.0\.1:10249\. Does it run on this node.*ECONNREFUSED/,
      );
      expect(peers).toHaveLength(4);
      expect(peers[0]).toMatchObject({ node: null, lastChange: null, mode: 'tunnel', address: '192.168.50.2' });
      one!.namespace.run('ip', 'link', 'set', 'nodeplane-v6', 'down');
      const [, mac] = /^(\S+) dst 192\.168\.50\.2/m.exec(
        one!.namespace.run('bridge', 'fdb', 'show', 'dev', 'nodeplane-v4'),
      )!;
      one!.namespace.run('bridge', 'fdb', 'del', mac!, 'dev', 'nodeplane-v4', 'dst', '192.168.50.2');
      const broken = json();
      expect(broken.status).toBe(2);
      expect(broken.peers.find(({ gateway }) => gateway === '10.244.2.0')).toMatchObject({
        address: null,
        reachable: 'no',
        because: 'no FDB entry on nodeplane-v4',
      });
      // With the device the kernel took its routes, and left its neighbours.
      expect(broken.peers.map(({ family }) => family)).toEqual(['IPv4', 'IPv4']);
    },
    LONG_MS,
  );

  it(
    'says that a node does not answer on its link',
    async () => {
      await cluster.start('--routes', 'host-gw');
      two!.namespace.run('ip', 'link', 'set', 'eth0', 'down');
      one!.namespace.run('ip', 'neighbour', 'flush', 'dev', 'eth0');
      const peer = async () => {
        await cluster.ask(pod1!, pod2!, 'IPv4');
        return json().peers.find(({ gateway }) => gateway === '192.168.50.2');
      };
      const failed = { reachable: 'no', because: '192.168.50.2 does not answer on eth0: neighbour FAILED' };
      await expect.poll(peer, { timeout: patient(120_000) }).toMatchObject(failed);
      two!.namespace.run('ip', 'link', 'set', 'eth0', 'up');
    },
    LONG_MS,
  );
});
