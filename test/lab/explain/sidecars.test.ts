import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Pods with rules of their own, which lead connections to a process beside the one asked for, as those of a mesh do.

const VIP = '10.96.0.10';
const SIDECAR = 15_006;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
const [WEB, CLIENT] = [web.ip(), client.ip()];

beforeAll(async () => {
  await world.begin([
    ...served('shop/web', VIP, [on(node, WEB)]),
    ...served('shop/none', '10.96.0.11', []),
    ...served('shop/other', '10.96.0.12', [on(node, WEB)], {}, 8081),
  ]);
  for (const pod of [web, client]) await pod.serve({ port: SIDECAR });
  await web.serve({ port: 8082, ip: '127.0.0.1' });
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const leads = (hook: string, pod: typeof web) => {
  const chain = `type nat hook ${hook} priority -100; tcp dport { 80, 8081, 8082 } redirect to :${SIDECAR};`;
  faults.nft(`table ip mesh { chain leads { ${chain} } }`, 'ip mesh', pod);
};
const leadsByLegacy = () => {
  const rule = `PREROUTING -p tcp --dport 8081 -j REDIRECT --to-ports ${SIDECAR}`;
  faults.run('iptables-legacy', `-t nat -A ${rule}`, `-t nat -D ${rule}`, web);
};
const drops = (hook: string, pod: typeof web, family = 'ip') =>
  faults.nft(`table ${family} own { chain own { type filter hook ${hook} priority 0; drop; } }`, `${family} own`, pod);

it.each<[string, works: boolean, begin: () => void, ip: string, port: number]>([
  ['a client whose own rules drop', false, () => drops('output', client), VIP, 80],
  ['an endpoint whose own rules drop', false, () => drops('input', web), VIP, 80],
  ['rules in front of a process that listens on loopback', true, () => leads('prerouting', web), WEB, 8082],
  ['rules in front of a port that nobody listens on', true, () => leads('prerouting', web), '10.96.0.12', 80],
  ['a client whose rules lead past a Service without endpoints', true, () => leads('output', client), '10.96.0.11', 80],
  [
    'a client whose rules lead past a node without a route',
    true,
    () => {
      leads('output', client);
      faults.ip(`route add blackhole ${WEB}/32`, `route del blackhole ${WEB}/32`);
    },
    VIP,
    80,
  ],
  ['legacy rules in front of a port that nobody listens on', true, leadsByLegacy, WEB, 8081],
])('%s: says neither that it works nor that it fails', async (_, works, begin, ip, port) => {
  begin();
  expect(await answers(client, ip, port)).toBe(works);
  const answer = await world.ask(`${ip}:${port}`, CLIENT);
  expect(answer, answer.cause).toMatchObject({
    verdict: 'unknown',
    cause: expect.stringContaining('rules of its own'),
  });
});

it('rules that only drop mend nothing, and the cause stays', async () => {
  drops('output', client);
  await faults.expectCode(`${CLIENT}:8099`, 'node', 'target-port');
  await faults.expectCode('10.96.0.11:80', CLIENT, 'no-endpoints');
});

it('chains without rules decide nothing', async () => {
  const chain = 'type filter hook output priority 0; policy accept;';
  faults.nft(`table ip own { chain own { ${chain} } }`, 'ip own', client);
  const [answer] = await world.askHere([{ destination: `${CLIENT}:${SIDECAR}`, source: 'node' }]);
  expect(answer!.verdict, answer!.cause).toBe('works');
});

it('tables of legacy iptables stay when their last rule is gone, and decide nothing', async () => {
  leadsByLegacy();
  expect((await world.ask(`${VIP}:80`, CLIENT)).verdict).toBe('unknown');
  faults.mend();
  expect(await answers(client, VIP)).toBe(true);
  const answer = await world.ask(`${VIP}:80`, CLIENT);
  expect(answer.verdict, answer.cause).toBe('works');
});

it('rules for the other family decide nothing', async () => {
  drops('output', client, 'ip6');
  expect(await answers(client, CLIENT, SIDECAR)).toBe(true);
  expect((await world.ask(`${CLIENT}:${SIDECAR}`, 'node')).verdict).toBe('works');
});
