import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers } from './faults.ts';

// Services that share an address or the number of a port, told apart by the protocol that is asked for.

const [TCP, UDP] = ['10.96.0.10', '10.96.0.11'];
const SHARED = '203.0.113.5';
const [NODE_PORT, OTHER_NODE_PORT] = [30_080, 30_081];
const world = new ExplainWorld();
const { node, web, client, outside } = world;

beforeAll(async () => {
  const as = (protocol: 'TCP' | 'UDP', more: object = {}) => ({
    type: 'NodePort' as const,
    ports: [{ port: 80, protocol, nodePort: NODE_PORT }],
    externalIPs: [SHARED],
    ...more,
  });
  // As the load balancer of k3s gives it.
  const own = { type: 'LoadBalancer', ports: [{ port: 80, nodePort: OTHER_NODE_PORT }], externalIPs: [] };
  const status = { loadBalancer: { ingress: [{ ip: node.ip() }] } };
  await world.begin([
    ...served('shop/tcp', TCP, [on(node, web.ip())], as('TCP')),
    ...served('shop/udp', UDP, [on(node, web.ip())], as('UDP')),
    ...served('shop/own', '10.96.0.12', [on(node, web.ip())], as('TCP', own)).map((object) =>
      object.kind === 'Service' ? { ...object, status } : object,
    ),
  ]);
  await node.serve({ port: OTHER_NODE_PORT, protocol: 'UDP' });
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

it.each<[string, 'TCP' | 'UDP', string, number, Host]>([
  ['the first of an external address', 'TCP', SHARED, 80, client],
  ['the second of an external address', 'UDP', SHARED, 80, client],
  ['the first of a NodePort', 'TCP', node.ip(), NODE_PORT, outside],
  ['the second of a NodePort', 'UDP', node.ip(), NODE_PORT, outside],
  ['a NodePort of one with the address of the node', 'TCP', node.ip(), OTHER_NODE_PORT, client],
  ['a process at the number of a NodePort of the other protocol', 'UDP', node.ip(), OTHER_NODE_PORT, outside],
])('%s', async (_, protocol, ip, port, from) => {
  const [answer] = await world.askHere([
    { destination: `${ip}:${port}`, source: from.ip(), protocol: protocol.toLowerCase() },
  ]);
  expect(answer!.verdict, answer!.cause).toBe('works');
  expect(await answers(from, ip, port, protocol)).toBe(true);
});

it('a protocol that none of them has is named', async () => {
  const answer = await world.ask(`${TCP}:80`, client.ip(), '--proto', 'udp');
  expect(answer, answer.cause).toMatchObject({ verdict: 'fails', code: 'no-such-port' });
  expect(await answers(client, TCP, 80, 'UDP')).toBe(false);
});
