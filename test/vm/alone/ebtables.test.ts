import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ExplainWorld, on, served } from '../../lab/explain/explain-world.ts';
import { answers, Faults } from '../../lab/explain/faults.ts';
import { type Host, removeAll } from '../../lab/lab.ts';

// Legacy ebtables, which the kernel of the lab does not have.

const VIP = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;

beforeAll(() => world.begin(served('shop/web', VIP, [on(node, web.ip())])), 600_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const modules = () => readFileSync('/proc/modules', 'utf8').match(/^\w*(ebt|arpt|nfnetlink_hook)\w*/gm) ?? [];
const ask = (from: Host = client) => world.ask(`${VIP}:80`, from === node ? 'node' : from.ip());
const isAnswered = (from: Host) => {
  node.namespace.run('conntrack', '-F');
  return answers(from, VIP);
};

it('nothing is loaded by asking', async () => {
  expect(await ask()).toMatchObject({ verdict: 'works' });
  expect(modules()).toEqual([]);
});

it.each([
  ['filter', 'INPUT -p IPv4 -j DROP', node],
  ['filter', 'OUTPUT -p IPv4 -j DROP', node],
  // The bridge shows its frames to other rules, which translate them: then they are switched.
  ['filter', 'FORWARD -p IPv4 -j DROP', client],
  ['nat', 'PREROUTING -p IPv4 -j dnat --to-destination 02:00:00:00:00:99', client],
  ['broute', 'BROUTING -p IPv4 -j DROP', client],
])('a rule of table %s makes UNKNOWN, a table without one does not: %s', async (table, rule, from) => {
  expect(await isAnswered(from)).toBe(true);
  node.namespace.run('ebtables-legacy', '-t', table, '-L');
  expect(await ask(from)).toMatchObject({ verdict: 'works' });
  faults.run('ebtables-legacy', `-t ${table} -A ${rule}`, `-t ${table} -F`);
  const { verdict, cause } = await ask(from);
  expect({ verdict, cause }).toEqual({
    verdict: 'unknown',
    cause: expect.stringContaining(`ebtables (legacy), table ${table}`),
  });
  expect(await isAnswered(from)).toBe(false);
  faults.mend();
  expect(await ask(from)).toMatchObject({ verdict: 'works' });
  expect(await isAnswered(from)).toBe(true);
});
