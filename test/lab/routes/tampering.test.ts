import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LabNode, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { type Cluster, createCluster, FAMILIES } from './cluster.ts';

// What others do to our VXLAN devices and what is on them.

const LONG_MS = patient(300_000);
const DEVICE = 'nodeplane-v4';

let cluster: Cluster;
let node: LabNode;
let before: string;
/** Of the first of the other nodes. */
let range: string;
let gateway: string;
let mac: string;
let remote: string;

beforeAll(async () => {
  cluster = await createCluster();
  [node] = cluster.nodes;
  await cluster.start('--routes', 'vxlan');
  while (diff().status !== 0) await delay(100);
  before = state();
  range = /^(\S+) nhid/m.exec(sh('ip route show proto 78'))![1]!;
  gateway = range.replace(/\/.*/, '');
  mac = new RegExp(`^${gateway} lladdr (\\S+)`, 'm').exec(sh(`ip neigh show dev ${DEVICE}`))![1]!;
  remote = new RegExp(`^${mac} dst (\\S+)`, 'm').exec(sh(`bridge fdb show dev ${DEVICE}`))![1]!;
}, LONG_MS);
afterAll(async () => {
  await cluster.stop();
  removeAll();
});

function run(command: string) {
  const words = ['netns', 'exec', node.namespace.name, 'sh', '-ec', command];
  const { status, stdout, stderr } = spawnSync('ip', words, { encoding: 'utf8' });
  return { status, stdout, stderr };
}
function sh(command: string): string {
  const { status, stdout, stderr } = run(command);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}
const diff = (flags = '') => run(`${builtProgram('nodeplane')} diff ${flags}`);

/** All that is ours, without the numbers that the kernel, or we, may choose anew. */
function state(): string {
  const lines = ['v4', 'v6'].flatMap((family) => [
    sh(`ip -d link show nodeplane-${family}`).replaceAll(/^\d+: /gm, ''),
    sh(`bridge fdb show dev nodeplane-${family}`),
  ]);
  const routes = ['-4', '-6'].flatMap((family) => [
    sh(`ip ${family} route show proto 78`).replaceAll(/nhid \d+/g, 'nhid N'),
    sh(`ip ${family} nexthop show proto 78`).replaceAll(/id \d+/g, 'id N'),
  ]);
  const neighbours = ['-4', '-6'].map((family) => sh(`ip ${family} neigh show nud permanent`));
  return [...lines, ...routes, ...neighbours].map((text) => text.split('\n').sort().join('\n')).join('\n');
}

/** Sends from the first node's pod to both others, until they have answered in both families. */
async function reachAll(): Promise<void> {
  const [one, ...others] = cluster.pods;
  for (const pod of others) {
    for (const family of FAMILIES) {
      await expect.poll(() => cluster.ask(one!, pod, family)).toBe(`${pod.name} saw ${one!.ip(family)}`);
    }
  }
}

/** The words stand for what the node has. */
const inWords = (command: string) =>
  command
    .replaceAll('RANGE', range)
    .replaceAll('GATEWAY', gateway)
    .replaceAll('MAC', mac)
    .replaceAll('REMOTE', remote)
    .replaceAll('NEXTHOP', new RegExp(`^${range} nhid (\\d+)`, 'm').exec(sh('ip route show proto 78'))![1]!);

// The kernel tells nobody of these, or nobody needs to hear of them at once: they are found by who asks.
it.each([
  [`ip link set ${DEVICE} type vxlan remote 192.168.50.99`, /~ device nodeplane-v4\n {6}- remote 192\.168\.50\.99\n/],
  [`ip link set ${DEVICE} type vxlan tos 4`, /- tos 4\n/],
  [`ip link set ${DEVICE} type vxlan df set`, /- df 1\n/],
  ['ip link set nodeplane-v6 type vxlan flowlabel 77', /~ device nodeplane-v6\n {6}- flowlabel 77\n/],
  [`ip link add strange type bridge; ip link set ${DEVICE} master strange`, /- master strange\n/],
  [
    `bridge fdb replace MAC dev ${DEVICE} dst REMOTE port 9999 self permanent`,
    / {6}- fdb MAC dev nodeplane-v4 dst REMOTE port 9999\n {6}\+ fdb MAC dev nodeplane-v4 dst REMOTE\n/,
  ],
  [`bridge fdb replace MAC dev ${DEVICE} dst REMOTE vni 99 self permanent`, /dst REMOTE vni 99\n/],
  [`bridge fdb replace MAC dev ${DEVICE} dst REMOTE via lo self permanent`, /dst REMOTE via 1\n/],
  [`bridge fdb replace MAC dev ${DEVICE} dst REMOTE self dynamic`, /dst REMOTE dynamic\n/],
  [
    `bridge fdb append 00:00:00:00:00:00 dev ${DEVICE} dst 192.168.50.98; bridge fdb append 00:00:00:00:00:00 dev ${DEVICE} dst 192.168.50.97 port 9`,
    /- fdb 00:00:00:00:00:00\n/,
  ],
  [
    `ip neigh replace GATEWAY lladdr 02:00:00:00:00:99 dev ${DEVICE} nud permanent`,
    /- neighbour GATEWAY dev nodeplane-v4 lladdr 02:00:00:00:00:99\n/,
  ],
])(
  '%s is told and mended',
  async (command, told) => {
    const meant = new RegExp(inWords(told.source));
    sh(inWords(command));
    const found = diff();
    expect(found).toMatchObject({ status: 1, stdout: expect.stringMatching(meant) });
    // Nobody knows links by number.
    expect(found.stdout).not.toMatch(/\bdev \d/);
    await mended();
  },
  LONG_MS,
);

// Of these the agent hears, and may have mended them before anybody asks.
it.each([
  `bridge fdb del MAC dev ${DEVICE}; ip nexthop add id 900 via 192.168.50.99 fdb; ip nexthop add id 901 group 900 fdb; bridge fdb add MAC dev ${DEVICE} nhid 901`,
  `ip link set ${DEVICE} arp off`,
  `ip link set ${DEVICE} down; ip link set ${DEVICE} name strange0; ip link set strange0 up 2>/dev/null || :`,
  'ip route replace blackhole RANGE proto 78',
  'ip route add RANGE nhid NEXTHOP proto 78 metric 5; ip route del RANGE nhid NEXTHOP proto 78 metric 0',
  `ip route append RANGE via GATEWAY dev ${DEVICE} onlink proto 78`,
  `ip route prepend RANGE via GATEWAY dev ${DEVICE} onlink proto 78`,
  `ip route replace RANGE proto 78 nexthop via GATEWAY dev ${DEVICE} onlink nexthop dev lo`,
  'ip route change RANGE nhid NEXTHOP proto 78 window 500 initcwnd 1',
  `ip route add RANGE tos 0x10 via GATEWAY dev ${DEVICE} onlink proto 78`,
  'ip nexthop replace id NEXTHOP blackhole proto 78',
  `ip nexthop replace id NEXTHOP via GATEWAY dev ${DEVICE} onlink proto 5`,
])(
  '%s is mended',
  async (command) => {
    sh(inWords(command));
    await mended();
  },
  LONG_MS,
);

it.each(['nodeplane-v4', 'nodeplane-v6'])(
  '%s renamed while it is up gives way to a new one at once',
  async (device) => {
    sh(`ip link set ${device} name strange0`);
    // Without anybody who asks, and long before the look of each minute.
    await expect.poll(() => run(`ip link show ${device}`).status, { timeout: patient(15_000) }).toBe(0);
    expect(run('ip link show strange0').status).toBe(1);
    await mended();
  },
  LONG_MS,
);

async function mended(): Promise<void> {
  // What others have made of a number of ours is told by the kernel when ours is refused: the next sync takes another.
  await expect.poll(() => diff('--repair').status, { timeout: patient(20_000) }).toBe(0);
  expect(diff()).toMatchObject({ status: 0, stderr: '' });
  run('ip link del strange; ip nexthop del id 901; ip nexthop del id 900; ip nexthop flush proto 5');
  expect(state()).toBe(before);
  await reachAll();
}
