import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on } from './explain-world.ts';

// Services with more endpoints than the agent tells one by one: those of this node come first, and no other is one too many.

const world = new ExplainWorld();
const { node, other, outside, client, web } = world;
const [CLUSTER, LOCAL, HELD, MORE] = ['10.96.0.60', '10.96.0.61', '10.96.0.62', '10.96.0.63'];
const NODE_PORT = 31_402;

beforeAll(async () => {
  const away = (name: string, slices: number) =>
    Array.from({ length: slices }, (_, slice) => {
      const endpoints = Array.from({ length: 100 }, (_, n) => on(other, `10.100.${slice}.${n + 1}`));
      return makeSlice(name, endpoints, { suffix: `a${slice}` });
    });
  // Its name comes last.
  const here = (name: string, port: number) =>
    makeSlice(name, [on(node, web.ip())], { ports: [{ port }], suffix: 'zz' });
  await world.begin([
    makeService('shop/cluster', { clusterIP: CLUSTER }),
    ...[...away('shop/cluster', 10), here('shop/cluster', 9999)],
    makeService('shop/local', {
      clusterIP: LOCAL,
      type: 'NodePort',
      externalTrafficPolicy: 'Local',
      ports: [{ port: 80, nodePort: NODE_PORT }],
    }),
    ...[...away('shop/local', 12), here('shop/local', 8080)],
    makeService('shop/held', { clusterIP: HELD, sessionAffinity: 'ClientIP' }),
    ...[...away('shop/held', 10), here('shop/held', 8080)],
    makeService('shop/more', { clusterIP: MORE }),
    ...[...away('shop/more', 40), here('shop/more', 8080)],
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

it('none of them is one that the plan does not have', async () => {
  const { verdict, code, cause, remedy } = await world.ask(`${CLUSTER}:80`, client.ip());
  expect({ verdict, code }, cause).toEqual({ verdict: 'partly', code: 'target-port' });
  expect(cause).toMatch(/^1 of 1001 endpoints fail: .*nobody listens on 9999 .*; of 1000 it cannot be told/);
  expect(remedy.join()).not.toContain('diff --repair');
});

it('policy Local has the endpoint of this node, wherever it stands among all', async () => {
  const { verdict, cause } = await world.ask(`${node.ip()}:${NODE_PORT}`, outside.ip());
  expect(verdict, cause).toBe('works');
  const outcomes = await outside.connectMany({ ip: node.ip(), port: NODE_PORT }, 3);
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['answered']));
});

it.each([
  ['with affinity', HELD],
  ['without', CLUSTER],
])('all ways to a thousand are walked, %s', async (_, address) => {
  const { cause } = await world.ask(`${address}:80`, client.ip());
  expect(cause).toMatch(/of 1001 endpoints/);
});

it('more ways than can be walked in time are UNKNOWN', async () => {
  const { verdict, cause } = await world.ask(`${MORE}:80`, client.ip());
  expect(verdict, cause).toBe('unknown');
  expect(cause).toContain('the rules have more ways than are walked');
});
