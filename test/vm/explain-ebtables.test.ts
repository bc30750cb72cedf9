import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ExplainWorld, on, served } from '../lab/explain/explain-world.ts';
import { answers, Faults } from '../lab/explain/faults.ts';
import { removeAll } from '../lab/lab.ts';

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
const ask = () => world.ask(`${VIP}:80`, client.ip());
const isAnswered = () => {
  node.namespace.run('conntrack', '-F');
  return answers(client, VIP);
};

it('nothing is loaded by asking', async () => {
  expect(await ask()).toMatchObject({ verdict: 'works' });
  expect(modules()).toEqual([]);
});

it.each([
  ['filter', 'INPUT -p IPv4 -j DROP'],
  ['filter', 'OUTPUT -p IPv4 -j DROP'],
  ['nat', 'PREROUTING -p IPv4 -j dnat --to-destination 02:00:00:00:00:99'],
  ['broute', 'BROUTING -p IPv4 -j DROP'],
])('a rule of table %s makes UNKNOWN, a table without one does not: %s', async (table, rule) => {
  expect(await isAnswered()).toBe(true);
  node.namespace.run('ebtables-legacy', '-t', table, '-L');
  expect(await ask()).toMatchObject({ verdict: 'works' });
  faults.run('ebtables-legacy', `-t ${table} -A ${rule}`, `-t ${table} -F`);
  const { verdict, cause } = await ask();
  expect({ verdict, cause }).toEqual({
    verdict: 'unknown',
    cause: expect.stringContaining(`ebtables (legacy), table ${table}`),
  });
  expect(await isAnswered()).toBe(false);
  faults.mend();
  expect(await ask()).toMatchObject({ verdict: 'works' });
  expect(await isAnswered()).toBe(true);
});
