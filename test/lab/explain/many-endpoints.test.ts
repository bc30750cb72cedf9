import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on } from './explain-world.ts';

// A Service with more endpoints than are looked at one by one.

const world = new ExplainWorld();
const { node, other, far, client, web } = world;
const VIP = '10.96.0.50';
const MIXED = '10.96.0.51';
const PORTS = Array.from({ length: 200 }, (_, index) => 9000 + index);

beforeAll(async () => {
  const slice = (name: string, host: typeof node, pod: typeof web, port: number) =>
    makeSlice(name, [on(host, pod.ip())], { ports: [{ port }], suffix: `p${port}` });
  await world.begin([
    makeService('shop/many', { clusterIP: VIP }),
    ...PORTS.map((port) => slice('shop/many', node, web, port)),
    makeService('shop/mixed', { clusterIP: MIXED }),
    ...PORTS.slice(0, 150).map((port) => slice('shop/mixed', other, far, port)),
    slice('shop/mixed', node, web, 9999),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

it('those that nobody looked at neither work nor fail', async () => {
  const failing = await world.ask(`${VIP}:80`, client.ip());
  expect(failing).toMatchObject({ verdict: 'partly', code: 'target-port' });
  expect(failing.cause).toMatch(/^128 of 200 endpoints fail: .*; of 72 it cannot be told/);
  for (const { address, problem } of failing.endpoints) {
    if (problem !== null) await web.serve({ port: Number(address.split(':').at(-1)) });
  }
  const { verdict, cause } = await world.ask(`${VIP}:80`, client.ip());
  expect(verdict, cause).toBe('unknown');
  expect(cause).toMatch(/^128 of 200 endpoints work; of 72 it cannot be told/);
  const outcomes = await client.connectMany({ ip: VIP, port: 80 }, 200, { timeoutMs: 1500 });
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['answered', 'refused']));
});

it('those of this node are looked at before all others', async () => {
  const { verdict, code, cause } = await world.ask(`${MIXED}:80`, client.ip());
  expect({ verdict, code }).toEqual({ verdict: 'partly', code: 'target-port' });
  expect(cause).toMatch(/^1 of 151 endpoints fail: .*nobody listens on 9999 .*; of 150 it cannot be told/);
});
