import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// What depends on who asks: whom external policy Local binds, and where affinity holds a client.

const STICKY = '10.96.0.12';
const [LOCAL, LEAVING] = [30080, 30081];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, other, web, web2, client, far, outside } = world;

beforeAll(async () => {
  const local = (nodePort: number) =>
    ({ type: 'NodePort', externalTrafficPolicy: 'Local', ports: [{ port: 80, nodePort }] }) as const;
  const leaving = { conditions: { ready: false, serving: true, terminating: true } };
  await world.begin([
    // Elsewhere by its slice, so that it is none of this node's.
    ...served('shop/local', '10.96.0.10', [on(other, web.ip())], local(LOCAL)),
    ...served('shop/leaving', '10.96.0.11', [on(node, web.ip(), leaving), on(other, web2.ip())], local(LEAVING)),
    ...served('shop/sticky', STICKY, [on(node, web.ip()), on(node, web2.ip())], { sessionAffinity: 'ClientIP' }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

async function expectVerdict(from: Host, port: number, works: boolean): Promise<void> {
  const answer = await world.ask(`node:${port}`, from.ip());
  expect(answer, answer.cause).toMatchObject(works ? { verdict: 'works' } : { verdict: 'fails', code: 'local-none' });
  expect(await answers(from, node.ip(), port)).toBe(works);
}

it.each<[string, Host, number, boolean]>([
  ['a client outside is bound by policy Local', outside, LOCAL, false],
  ['a pod is not', client, LOCAL, true],
  ['nor is one of another node, which the range of the cluster tells', far, LOCAL, true],
  ['a client outside gets one that leaves', outside, LEAVING, true],
  ['a pod of another node gets those elsewhere', far, LEAVING, true],
])('%s', (_, from, port, works) => expectVerdict(from, port, works));

it('a client that affinity holds gets none of the others', async () => {
  await client.connect({ ip: STICKY, port: 80 });
  const held = (await client.connect({ ip: STICKY, port: 80 })) as { readonly by?: string };
  const [its, another] = held.by === 'web' ? [web, web2] : [web2, web];
  await another.stopServing({ port: TARGET });
  const works = await world.ask(STICKY, client.ip());
  expect(works, works.cause).toMatchObject({ verdict: 'works' });
  expect(await answers(client, STICKY)).toBe(true);
  await its.stopServing({ port: TARGET });
  await another.serve({ port: TARGET });
  await faults.expectCode(STICKY, client.ip(), 'target-port');
  for (let tries = 0; tries < 4; tries++) expect(await answers(client, STICKY)).toBe(false);
  await its.serve({ port: TARGET });
});

it('pods that are not known as such are bound by policy Local too', async () => {
  await world.end();
  await world.startAgent('--cluster-cidr', '10.99.0.0/16,fd99::/48');
  await expectVerdict(client, LOCAL, false);
  const answer = await world.ask(`node:${LEAVING}`, client.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'works' });
  expect(await answers(client, node.ip(), LEAVING)).toBe(true);
});
