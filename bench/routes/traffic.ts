import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { numberedNode } from '../../test/fakes/routes/node-objects.ts';
import { createHost } from '../../test/lab/host.ts';
import { ip } from '../../test/lab/wire.ts';
import { type Figure, median, pairedTurns, ratioAtLeast, ratioAtMost } from '../report/index.ts';
import { CASES, nameOf, type RouteCase, RouteWorld } from './route-world.ts';
import { createTwoNodes, type NodeWithPod, podAddress } from './two-nodes.ts';

const TURNS = 12;
const SECONDS = 1;
const ROUND_TRIPS = 200;
const PORT = 8080;
/** The sender's and the receiver's: left to the scheduler, both share one in some turns and not in others, whichever side it is. */
const PROCESSORS = pinned(allowedProcessors());
/** Fits the tunnel in both families, so that none of the setups sends other packets than the others. */
const POD_MTU = 1430;

/** Bytes a second and round trips between pods on two nodes: over our routes, and over some made by hand with `ip`, by turns. */
export async function traffic(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const each of CASES) figures.push(...(await figuresOf(each)));
  return figures;
}

async function figuresOf(each: RouteCase): Promise<Figure[]> {
  const [ours, byHand] = [createTwoNodes('ours', POD_MTU), createTwoNodes('hand', POD_MTU)];
  const worlds = ours.map(({ number, node }) => new RouteWorld(each, node, { own: number }));
  for (const world of worlds) await world.start([numberedNode(1), numberedNode(2)]);
  for (const [node, other] of [byHand, byHand.toReversed()]) routeByHand(each, node!, other!);
  const sides = [];
  for (const nodes of [ours, byHand]) sides.push(await startSide(each, nodes));
  // ABBA: the first of two has the processors as the one before left them.
  for (let turn = 0; turn < TURNS; turn++) {
    for (const side of turn % 2 ? sides.toReversed() : sides) await side.measure();
  }
  for (const side of sides) await side.end();
  for (const world of worlds) await world.stop();
  const [our, peer] = sides;
  const peerName = 'made with `ip`';
  return [
    {
      what: `${nameOf(each)}: TCP throughput`,
      unit: 'Gbit/s',
      ...pairedTurns(our!.throughput, peer!.throughput),
      peerName,
      target: ratioAtLeast(0.97),
      ...(each.mode === 'vxlan' && { headline: `TCP between pods of two nodes, ${nameOf(each)}` }),
    },
    {
      what: `${nameOf(each)}: TCP round trip, median`,
      unit: 'ms',
      ...pairedTurns(our!.roundTrips, peer!.roundTrips),
      peerName,
      target: ratioAtMost(1 / 0.97),
    },
  ];
}

async function startSide({ family }: RouteCase, [one, two]: readonly [NodeWithPod, NodeWithPod]) {
  const target = podAddress(two.number, family);
  const [client, server] = [one, two].map(({ pod, number }) =>
    createHost({ name: pod.name, namespace: pod, ips: [podAddress(number, family)] }),
  );
  await server!.serve({ port: PORT });
  const iperf = spawn('ip', ['netns', 'exec', two.pod.name, 'iperf3', '-s', '--forceflush'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(iperf.stdout, 'data');
  const connection = await client!.hold({ ip: target, port: PORT });
  const throughput: number[] = [];
  /** The median of each turn. */
  const roundTrips: number[] = [];
  return {
    throughput,
    roundTrips,
    async measure() {
      const output = one.pod.run('iperf3', '-c', target, '-t', String(SECONDS), '-J', ...PROCESSORS);
      const { end } = JSON.parse(output) as { end: { sum_received: { bits_per_second: number } } };
      throughput.push(end.sum_received.bits_per_second / 1e9);
      const trips: number[] = [];
      while (trips.length < ROUND_TRIPS) {
        const outcome = await connection.echo();
        if (outcome.kind !== 'answered') throw new Error(`No answer from ${target}: ${outcome.kind}`);
        trips.push(outcome.ms);
      }
      roundTrips.push(median(trips));
    },
    async end() {
      await connection.close();
      iperf.kill();
      for (const host of [client!, server!]) await host.remove();
      for (const { node } of [one, two]) node.remove();
    },
  };
}

/** As a person would do it: a gateway route, or a VXLAN device with one FDB entry, one neighbour and one route. */
function routeByHand(
  { family, mode }: RouteCase,
  { number: own, node }: NodeWithPod,
  { number: other }: NodeWithPod,
): void {
  const range = family === 'IPv4' ? `10.64.${other}.0/24` : `fd00:10:244:${other}::/64`;
  const [local, remote] = [own, other].map((number) => (family === 'IPv4' ? `10.0.0.${number}` : `fd00::${number}`));
  if (mode === 'host-gw') {
    ip(node, [`route add ${range} via ${remote} dev eth0`]);
    return;
  }
  const inside = (number: number) => (family === 'IPv4' ? `10.64.${number}.0` : `fd00:10:244:${number}::`);
  const mac = (number: number) => `02:00:00:00:00:0${number}`;
  ip(node, [
    `link add vxlan0 address ${mac(own)} type vxlan id 1 dstport 8472 local ${local} dev eth0 nolearning`,
    'link set vxlan0 up',
    `address add ${inside(own)}/${family === 'IPv4' ? 32 : 128} dev vxlan0`,
    `neighbour add ${inside(other)} lladdr ${mac(other)} dev vxlan0 nud permanent`,
    `route add ${range} via ${inside(other)} dev vxlan0 onlink`,
  ]);
  node.run('bridge', 'fdb', 'append', mac(other), 'dev', 'vxlan0', 'dst', remote!);
}

/** The numbers of the processors this process may run on, from /proc/self/status: `0-2,5` are four. */
function allowedProcessors(): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

/** Options of iperf3 that give each side one of the processors; none where there is but one. */
function pinned([sender, receiver]: readonly number[]): string[] {
  return receiver === undefined ? [] : ['-A', `${sender},${receiver}`];
}
