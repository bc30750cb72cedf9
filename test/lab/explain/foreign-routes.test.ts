import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shellWord, withPort } from '../../../src/core/index.ts';
import type { Answer } from '../../../src/explain/index.ts';
import { type Host, type LabNode, removeAll } from '../lab.ts';
import { type Cluster, createCluster, POD_PORT } from '../routes/cluster.ts';
import { on, runIn, served } from './explain-world.ts';

// Where the agents make the routes to pods of other nodes (host-gw, which leaves out the node behind a router), and others do, too.

const VIP = '10.96.0.10';
let cluster: Cluster;
/** A machine that is no node, and forwards nothing. */
let router: Host;

beforeAll(async () => {
  cluster = await createCluster();
  router = cluster.lab.addClient('router');
  const [, , three] = cluster.nodes;
  await three.serve({ port: POD_PORT });
  for (const object of served('shop/host', VIP, [on(three, three.ip())])) cluster.objects.put(object);
  await cluster.start('--routes', 'host-gw', '--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48');
}, 300_000);
afterAll(async () => {
  await cluster.stop();
  removeAll();
});

async function ask(destination: string, from: string, ...flags: string[]): Promise<Answer> {
  const said = await runIn(cluster.nodes[0], 'explain', destination, '--from', from, '-o', 'json', ...flags);
  expect(said.stderr).toBe('');
  return JSON.parse(said.stdout) as Answer;
}

const RANGES = {
  IPv4: ['10.244.1.0/24', '10.244.2.0/24', '10.244.3.0/24'],
  IPv6: ['fd00:10:244:1::/64', 'fd00:10:244:2::/64', 'fd00:10:244:3::/64'],
} as const;

/** In brackets where they are needed. */

describe.each(['IPv4', 'IPv6'] as const)('a pod of a node to which there is no route (%s)', (family) => {
  it('is not reached where the network does not know pods: an attempt tells', async () => {
    const [pod, , far] = cluster.pods;
    const destination = withPort(far.ip(family), POD_PORT);
    const answer = await ask(destination, pod.ip(family));
    const tried = `nodeplane explain ${shellWord(destination)} --from ${pod.ip(family)} --probe`;
    expect(answer, answer.cause).toMatchObject({
      verdict: 'unknown',
      remedy: ['nodeplane routes', expect.stringContaining('on node-'), tried],
    });
    expect(answer.cause).toContain(`${far.ip(family)} is reached by the default route alone`);
    const probed = await ask(destination, pod.ip(family), '--probe');
    expect(probed, probed.cause).toMatchObject({ verdict: 'fails', code: 'no-peer-route' });
    expect(await cluster.ask(pod, far, family)).not.toContain('saw');
  });

  it('is reached where a router knows pods', async () => {
    const [pod, , far] = cluster.pods;
    const [node, , farNode] = cluster.nodes;
    const [range, , farRange] = RANGES[family];
    const route = (what: 'add' | 'del', to: string, via: LabNode) =>
      cluster.lab.wire.namespace.run('ip', family === 'IPv4' ? '-4' : '-6', 'route', what, to, 'via', via.ip(family));
    route('add', farRange, farNode);
    route('add', range, node);
    try {
      expect(await cluster.ask(pod, far, family)).toContain('saw');
      const probed = await ask(withPort(far.ip(family), POD_PORT), pod.ip(family), '--probe');
      expect(probed, probed.cause).toMatchObject({ verdict: 'works' });
      expect(await cluster.ask(far, pod, family)).toContain('saw');
      const back = await ask(withPort(pod.ip(family), POD_PORT), far.ip(family));
      expect(back, back.cause).toMatchObject({ verdict: 'unknown' });
      expect(back.cause).toContain('leave by the default route alone: right only where the network knows pods');
    } finally {
      route('del', farRange, farNode);
      route('del', range, node);
    }
  });
});

it('nodes themselves are reached by the default route', async () => {
  const [node] = cluster.nodes;
  const answer = await ask(`${VIP}:80`, 'node', '--probe');
  expect(answer, answer.cause).toMatchObject({ verdict: 'works' });
  expect(await node.connect({ ip: VIP, port: 80 })).toMatchObject({ kind: 'answered' });
});

/** What takes pods of the second node away, and how the kernel's answer shows it. */
const TAKEN = {
  IPv4: { range: '10.244.2.0/25', metric: 0 },
  IPv6: { range: 'fd00:10:244:2::/64', metric: 10 },
} as const;

function take(node: LabNode, family: 'IPv4' | 'IPv6', what: 'add' | 'del'): void {
  const { range, metric } = TAKEN[family];
  const route = `${range} via ${router.ip(family)} dev eth0 metric ${metric}`;
  node.namespace.run('ip', ...`${family === 'IPv4' ? '-4' : '-6'} route ${what} ${route}`.split(' '));
}

it.each(['IPv4', 'IPv6'] as const)('a route of somebody else that takes pods away is named (%s)', async (family) => {
  const [node, two] = cluster.nodes;
  const [pod, far] = cluster.pods;
  const ip = far.ip(family);
  const destination = withPort(ip, POD_PORT);
  const { range, metric } = TAKEN[family];
  const told = `the route ${range} via ${router.ip(family)} dev eth0 metric ${metric} takes what is for ${ip}, and is not nodeplane's`;
  expect(await ask(destination, pod.ip(family), '--probe')).toMatchObject({ verdict: 'works', warnings: [] });
  take(node, family, 'add');
  try {
    const answer = await ask(destination, pod.ip(family));
    expect(answer, answer.cause).toMatchObject({ verdict: 'unknown' });
    expect(answer.cause).toContain(told);
    expect(answer.path.find(({ stage }) => stage === 'route')).toMatchObject({ result: 'unknown' });
    const probed = await ask(destination, pod.ip(family), '--probe');
    expect(probed, probed.cause).toMatchObject({ verdict: 'fails', code: 'no-peer-route' });
    expect(probed.cause).toContain(`${told}, whose own would lead to ${two.name} (${two.ip()}`);
    expect(await cluster.ask(pod, far, family)).not.toContain('saw');
    // So it does with answers.
    const back = await ask(withPort(pod.ip(family), POD_PORT), ip, '--probe');
    expect(back, back.cause).toMatchObject({ verdict: 'unknown' });
    expect(back.cause).toContain(told);
    expect(await cluster.ask(far, pod, family)).not.toContain('saw');
  } finally {
    take(node, family, 'del');
  }
});
