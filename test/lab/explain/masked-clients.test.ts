import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Answer } from '../../../src/explain/index.ts';
import { removeAll } from '../lab.ts';
import { type Cluster, createCluster } from '../routes/cluster.ts';
import { on, runIn, served } from './explain-world.ts';

// Agents with --routes give what their pods send to addresses of other nodes that of their own: policy Local takes such
// a client for one outside.

const [ELSEWHERE, BOTH, EVERYBODY] = [30010, 30011, 30012];
let cluster: Cluster;

beforeAll(async () => {
  cluster = await createCluster({ families: ['IPv4'] });
  const [one, two] = cluster.nodes;
  const [near, far] = cluster.pods;
  const at = (nodePort: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort }] }) as const;
  const local = { externalTrafficPolicy: 'Local' } as const;
  for (const object of [
    ...served('shop/elsewhere', '10.96.0.10', [on(two, far.ip())], { ...at(ELSEWHERE), ...local }),
    ...served('shop/both', '10.96.0.11', [on(one, near.ip()), on(two, far.ip())], { ...at(BOTH), ...local }),
    ...served('shop/everybody', '10.96.0.12', [on(one, near.ip())], at(EVERYBODY)),
  ])
    cluster.objects.put(object);
  await cluster.start('--routes', 'auto', '--cluster-cidr', '10.244.0.0/16');
}, 300_000);
afterAll(async () => {
  await cluster.stop();
  removeAll();
});

async function ask(nodePort: number, from: string): Promise<Answer> {
  const args = [`node:${nodePort}`, '--from', from, '--probe', '-o', 'json'];
  const said = await runIn(cluster.nodes[0], 'explain', ...args);
  expect(said.stderr).toBe('');
  return JSON.parse(said.stdout) as Answer;
}

it('where the address of a client decides, it is not known which one a pod of another node has here', async () => {
  const [node, two] = cluster.nodes;
  const [, client, third] = cluster.pods;
  const at = (port: number) => ({ ip: node.ip(), port });
  expect(await client.connect(at(ELSEWHERE), { timeoutMs: 1000 })).toMatchObject({ kind: 'timeout' });
  const elsewhere = await ask(ELSEWHERE, client.ip());
  expect(elsewhere, elsewhere.cause).toMatchObject({ verdict: 'unknown' });
  expect(elsewhere.cause).toContain(`${two.name} decides whether ${client.ip()} is seen here by its own address`);
  const outcomes = await third.connectMany(at(BOTH), 12);
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['answered']));
  const both = await ask(BOTH, third.ip());
  expect(both, both.cause).toMatchObject({ verdict: 'unknown' });
});

it('where it decides nothing the answer is certain', async () => {
  const [node] = cluster.nodes;
  const [, client] = cluster.pods;
  expect(await client.connect({ ip: node.ip(), port: EVERYBODY })).toMatchObject({ kind: 'answered' });
  const answer = await ask(EVERYBODY, client.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'works' });
});

it('nor does it matter where it does not whether there is a way back to the pod', async () => {
  const [node] = cluster.nodes;
  const [, client] = cluster.pods;
  const route = (what: 'add' | 'del') => node.namespace.run('ip', 'route', what, 'blackhole', '10.244.2.0/25');
  route('add');
  try {
    expect(await client.connect({ ip: node.ip(), port: EVERYBODY })).toMatchObject({ kind: 'answered' });
    const answer = await ask(EVERYBODY, client.ip());
    expect(answer, answer.cause).toMatchObject({ verdict: 'unknown' });
  } finally {
    route('del');
  }
});
