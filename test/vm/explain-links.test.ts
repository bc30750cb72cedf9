import { afterAll, beforeAll, expect, it } from 'vitest';
import { ExplainWorld, on, served } from '../lab/explain/explain-world.ts';
import { answers, Faults, vethOf } from '../lab/explain/faults.ts';
import { removeAll } from '../lab/lab.ts';

// Queues of tc, and links, that the kernel of the lab has not. The packets that a queue stops are those to the endpoint.

const VIP = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;
const link = vethOf(node, web);

beforeAll(async () => {
  await world.begin(served('shop/web', VIP, [on(node, web.ip())]));
  await node.serve({ port: 9090 });
}, 600_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const tc = (words: string) => void node.namespace.run('tc', ...words.split(' '));

const QUEUES: readonly (readonly ['works' | 'unknown', queue: string, filter?: string])[] = [
  ['unknown', 'fq limit 0'],
  ['unknown', 'fq flow_limit 0'],
  ['unknown', 'cake memlimit 100'],
  ['unknown', 'prio', 'protocol all prio 1 u32 match u32 0 0 action drop'],
  ['unknown', 'prio', 'protocol all prio 1 flower action drop'],
  ['unknown', 'prio', 'protocol all prio 1 matchall action drop'],
  ['unknown', 'fq_codel', 'protocol all prio 1 matchall action drop'],
  ['works', 'fq'],
  ['works', 'codel'],
  ['works', 'fq_codel'],
  ['works', 'cake'],
  ['works', 'cake bandwidth 100mbit'],
  ['works', 'sfq'],
  ['works', 'prio'],
  ['works', 'prio', 'protocol all prio 1 flower classid 1:1'],
  ['works', 'prio', 'protocol all prio 1 u32 match u32 0 0 flowid 1:1'],
  ['works', 'prio', 'protocol all prio 1 matchall classid 1:1'],
];

it.each(QUEUES.map(([verdict, queue, filter = '']) => [verdict, queue, filter] as const))(
  '%s: %s %s',
  async (verdict, queue, filter) => {
    tc(`qdisc add dev ${link} root handle 1: ${queue}`);
    faults.undo(() => tc(`qdisc del dev ${link} root`));
    if (filter) tc(`filter add dev ${link} parent 1: ${filter}`);
    const [answer] = await world.askHere([{ destination: `${VIP}:80`, source: client.ip() }]);
    expect(answer!.verdict, answer!.cause).toBe(verdict);
    expect(await answers(client, VIP)).toBe(verdict === 'works');
  },
);

// The first packets pass, as those do that find nothing in front of them.
it.each(['fq_codel memory_limit 100', 'cake bandwidth 8bit'])('unknown: %s', async (queue) => {
  tc(`qdisc add dev ${link} root ${queue}`);
  faults.undo(() => tc(`qdisc del dev ${link} root`));
  const [answer] = await world.askHere([{ destination: `${VIP}:80`, source: client.ip() }]);
  expect(answer!.verdict, answer!.cause).toBe('unknown');
});

it.each([
  ['0', false],
  ['1', true],
])(
  'a VRF, whose connections are of all sockets or not (tcp_l3mdev_accept %s), is not simulated',
  async (value, works) => {
    faults.sysctl('net.ipv4.tcp_l3mdev_accept', value);
    const way = node.namespace.run('ip', 'route', 'show', 'default').trim();
    faults.undo(() => void node.namespace.run('ip', 'route', 'add', ...way.split(' ')));
    faults.ip('link add vrf1 type vrf table 10', 'link del vrf1');
    node.namespace.run('ip', 'link', 'set', 'vrf1', 'up');
    faults.ip('link set eth0 master vrf1', 'link set eth0 nomaster');
    const [answer] = await world.askHere([{ destination: `${node.ip()}:9090`, source: outside.ip() }]);
    expect(answer, answer!.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('VRF') });
    expect(await answers(outside, node.ip(), 9090)).toBe(works);
  },
);
