import { afterAll, beforeAll, expect, it } from 'vitest';
import { ExplainWorld, on, served } from '../explain/explain-world.ts';
import { Faults } from '../explain/faults.ts';
import { removeAll } from '../lab.ts';
import { traceOf } from './live-trace.ts';

// What a trace says of packets that rules of others refuse, drop late or keep out of connection tracking.

const VIP = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;

beforeAll(async () => {
  await node.serve({ port: 5353, protocol: 'UDP' });
  await node.serve({ port: 5353 });
  await world.begin([
    ...served('shop/web', VIP, [on(node, web.ip())], { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] }),
    // The same endpoint by another protocol.
    ...served('shop/aweb', '10.96.0.11', [on(node, web.ip())], { ports: [{ port: 80, protocol: 'UDP' }] }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

async function traced(source: string, destination: string, send: () => Promise<unknown>, ...more: string[]) {
  const { stdout, status } = await traceOf(node, [source, destination, '--live', '3s', ...more], send);
  return { text: stdout, status };
}

const theirs = (chain: string) => faults.nft(`table inet theirs { chain c { ${chain} } }`, 'inet theirs');

it('a reset by a rule is the rule’s, and no answer of the endpoint', async () => {
  theirs('type filter hook forward priority 0; tcp dport 8080 reject with tcp reset;');
  const send = () => outside.connect({ ip: node.ip(), port: 30080 }, { timeoutMs: 1500 });
  const { text, status } = await traced(outside.ip(), `${node.ip()}:30080`, send);
  expect(text).toContain('inet theirs');
  expect(text).not.toContain('refused');
  expect(status).toBe(1);
  faults.mend();
  expect(await traced(outside.ip(), `${node.ip()}:30080`, send)).toMatchObject({
    status: 0,
    text: expect.stringContaining('shop/web'),
  });
});

it('an answer that is dropped behind all else did not arrive', async () => {
  theirs('type filter hook postrouting priority 400; tcp sport { 80, 8080 } drop;');
  const send = () => client.connect({ ip: VIP, port: 80 }, { timeoutMs: 1500 });
  expect((await send()).kind).toBe('timeout');
  const { text, status } = await traced(client.ip(), `${VIP}:80`, send);
  expect(text).toContain('inet theirs');
  expect(text).not.toContain('answered');
  expect(status).toBe(1);
});

it.each(['TCP', 'UDP'] as const)('answers are seen that connection tracking does not know (%s)', async (protocol) => {
  const raw = (hook: string, which: string) =>
    `chain ${hook} { type filter hook ${hook} priority -300; th ${which} 5353 notrack; }`;
  faults.nft(`table inet cache { ${raw('prerouting', 'dport')}\n${raw('output', 'sport')} }`, 'inet cache');
  // From which a process of the node answers datagrams.
  const gateway = client.ip().replace(/\d+$/, '1');
  const send = () => client.connect({ ip: gateway, port: 5353, protocol }, { timeoutMs: 1500 });
  expect((await send()).kind).toBe('answered');
  const { text, status } = await traced(client.ip(), `${gateway}:5353`, send, '--proto', protocol.toLowerCase());
  expect(text).toContain('answered');
  expect(status).toBe(0);
});
