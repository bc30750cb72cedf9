import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Answer } from '../../../src/explain/index.ts';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { removeAll } from '../lab.ts';
import { type Cluster, createCluster, POD_PORT } from '../routes/cluster.ts';
import { on, runIn, served } from './explain-world.ts';

// A route leads to another node than the pod's, whose answers come directly. Rules of mode iptables drop there what
// follows the first packet, as the node in between has heard no answer to it: a connection is opened, and nothing comes
// of it.

useOwnLockFile();
const [VIP, NAMELESS] = ['10.96.0.10', '10.96.0.11'];
let cluster: Cluster;

beforeAll(async () => {
  cluster = await createCluster({ families: ['IPv4'] });
  const [, , three] = cluster.nodes;
  const [, , far] = cluster.pods;
  for (const object of [
    ...served('shop/far', VIP, [on(three, far.ip())]),
    ...served('shop/nameless', NAMELESS, [far.ip()]),
  ])
    cluster.objects.put(object);
  const mode = ['--proxy-mode', 'iptables', '--iptables-variant', 'nft'];
  await cluster.start('--routes', 'vxlan', '--cluster-cidr', '10.244.0.0/16', ...mode);
}, 300_000);
afterAll(async () => {
  await cluster.stop();
  removeAll();
});

it.each<[string, () => readonly [string, number]]>([
  ['a Service', () => [VIP, 80]],
  ['a Service whose endpoint names no node', () => [NAMELESS, 80]],
  ['the pod itself', () => [cluster.pods[2].ip(), POD_PORT]],
])('that a connection was opened does not mean that it works: %s', async (_, place) => {
  const [ip, port] = place();
  const [node, two, three] = cluster.nodes;
  const [client] = cluster.pods;
  const ask = async (): Promise<Answer> => {
    const said = await runIn(node, 'explain', `${ip}:${port}`, '--from', client.ip(), '--probe', '-o', 'json');
    expect(said.stderr).toBe('');
    return JSON.parse(said.stdout) as Answer;
  };
  const works = await ask();
  expect(works, works.cause).toMatchObject({ verdict: 'works' });
  const range = '10.244.3.0/25';
  node.namespace.run('ip', 'route', 'add', range, 'via', two.ip());
  try {
    const answer = await ask();
    expect(answer, answer.cause).toMatchObject({ verdict: 'unknown' });
    expect(answer.cause).toContain(`which is ${two.name}; ${cluster.pods[2].ip()} is on ${three.name}`);
    expect(await client.connect({ ip, port }, { timeoutMs: 1500 })).not.toMatchObject({ kind: 'answered' });
  } finally {
    node.namespace.run('ip', 'route', 'del', range);
  }
});
