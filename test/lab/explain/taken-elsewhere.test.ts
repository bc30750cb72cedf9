import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Rules of others that may lead packets of a Service to somebody who answers, by what nobody here knows: that its
// endpoint is broken decides nothing then.

const [VIP, SILENT, OF_NODE] = ['10.96.0.10', 8099, 8090];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, web2, client } = world;

beforeAll(async () => {
  await node.serve({ port: OF_NODE });
  await world.begin(served('shop/broken', VIP, [on(node, web.ip())], {}, SILENT));
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const UNKNOWN = ['ip ttl 64', 'meta length 60', 'limit rate 100/second', 'meta cpu 0-4095'];
const AWAY = [`dnat to ${web2.ip()}:${TARGET}`, `redirect to :${OF_NODE}`];

it.each(UNKNOWN.flatMap((when) => AWAY.map((away) => `${when} ${away}`)))('%s', async (rule) => {
  const chain = `chain away { type nat hook prerouting priority -110; ip daddr ${VIP} tcp dport 80 ${rule}; }`;
  faults.nft(`table ip theirs { ${chain} }`, 'ip theirs');
  world.run('conntrack', '-F');
  const answer = await world.ask(VIP, client.ip());
  expect(answer.verdict, answer.cause).toBe('unknown');
  expect(answer.cause).toContain(`If that changes nothing: ${web.ip()}:${SILENT}: nobody listens`);
  expect(await answers(client, VIP)).toBe(true);
});

it.each(AWAY)('what is not met changes nothing: %s', async (away) => {
  const chain = `chain away { type nat hook prerouting priority -110; ip saddr ${web2.ip()} tcp dport 80 ip ttl 64 ${away}; }`;
  faults.nft(`table ip theirs { ${chain} }`, 'ip theirs');
  await faults.expectCode(VIP, client.ip(), 'target-port');
  expect(await answers(client, VIP)).toBe(false);
});
