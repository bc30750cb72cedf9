import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Frames from pod to pod of one bridge, which shows them to rules and sends them on whatever the routes of the node are.

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
const [WEB, CLIENT] = [web.ip(), client.ip()];

beforeAll(() => world.begin(served('shop/web', '10.96.0.10', [on(node, WEB)])), 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const route = (what: string) => faults.ip(`route add ${what}`, `route del ${what}`);
const AWAY = {
  'a route of the endpoint that leads elsewhere': () => route(`${WEB}/32 dev eth0`),
  'a route of the endpoint that refuses': () => route(`prohibit ${WEB}/32`),
  'a route of the client that leads elsewhere': () => route(`${CLIENT}/32 dev eth0`),
  'policy rules that know no way between pods': () => {
    faults.ip('rule add pref 100 table main suppress_ifgroup default', 'rule del pref 100');
    faults.ip('rule add pref 101 unreachable', 'rule del pref 101');
  },
} as const;

const TO_WEB = `tcp dport ${TARGET}`;
const RULES = [
  ['forward', `oifname "cni0" ${TO_WEB} drop`, false],
  ['forward', `oifname "eth0" ${TO_WEB} drop`, true],
  ['postrouting', `tcp sport ${TARGET} drop`, false],
  ['input', `${TO_WEB} drop`, true],
] as const;

it.each(
  Object.entries(AWAY).flatMap(([name, begin]) =>
    RULES.map(([hook, rule, works]) => [name, `${hook} ${rule}`, begin, works] as const),
  ),
)('%s, and a rule in hook %s', async (_, rule, begin, works) => {
  begin();
  const [hook, ...words] = rule.split(' ');
  const chain = `chain theirs { type filter hook ${hook} priority 0; ${words.join(' ')}; }`;
  faults.nft(`table inet theirs { ${chain} }`, 'inet theirs');
  world.run('conntrack', '-F');
  const [answer] = await world.askHere([{ destination: `${WEB}:${TARGET}`, source: CLIENT }]);
  expect(await answers(client, WEB, TARGET)).toBe(works);
  expect(answer!.verdict, answer!.cause).toBe(works ? 'works' : 'fails');
});
