import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Sets and maps of others: what a key finds there, and what rules put in and take out while packets are on their way. No verdict may be
// one that a real connection contradicts.

const VIP = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
const [WEB, CLIENT] = [web.ip(), client.ip()];
const TO_TARGET = `tcp dport ${TARGET}`;

beforeAll(() => world.begin(served('shop/web', VIP, [on(node, WEB)])), 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** What explain computes for the client; where it errs, the packet is dropped. */
const LONG_HASH = 153;

const block = (head: string, ...lines: string[]) => [`${head} {`, ...lines, '}'];
const forward = (...rules: string[]) => block('chain forward', 'type filter hook forward priority 0;', ...rules);
const GONE = block('chain gone', 'drop');
const NOBODY = block('set nobody', 'type ipv4_addr', 'flags dynamic');
const KNOWN = block('set known', 'type ipv4_addr', 'flags dynamic', `elements = { ${CLIENT} }`);

/** What is in the table `inet foreign`, a line each; what explain says, and whether connections are answered. */
type Lookup = readonly [lines: readonly string[], verdict: 'works' | 'fails' | 'unknown', answered: boolean];

const LOOKUPS: Readonly<Record<string, Lookup>> = {
  'a map by state, which jumps': [
    [...GONE, ...forward('ct state vmap { established : accept, new : jump gone }')],
    'fails',
    false,
  ],
  'a map by state, which lets pass': [
    [...GONE, ...forward('ct state vmap { established : accept, new : accept, invalid : jump gone }')],
    'works',
    true,
  ],
  'a set of states and ports': [forward(`ct state . tcp dport { new . ${TARGET} } drop`), 'fails', false],
  'a set of flags': [forward('tcp flags { syn } drop'), 'fails', false],
  'a map by protocol and port': [forward(`meta l4proto . th dport vmap { tcp . ${TARGET} : drop }`), 'fails', false],
  'a map by direction': [forward('ct direction vmap { reply : drop }'), 'fails', false],
  'a map by length': [forward('meta length vmap { 0-20 : drop }'), 'unknown', true],
  'all others': [forward('ip saddr vmap { 10.9.9.9 : accept, * : drop }'), 'fails', false],
  'all others, of which these are none': [
    forward(`ip saddr vmap { ${CLIENT} : accept, ${WEB} : accept, * : drop }`),
    'works',
    true,
  ],
  'all others than a range': [forward('ip saddr vmap { 10.243.0.0/16 : accept, * : drop }'), 'fails', false],
  'all others than a range that these are in': [
    forward('ip saddr vmap { 10.244.0.0/16 : accept, * : drop }'),
    'works',
    true,
  ],
  'all others than a range of addresses and ports': [
    forward('ip saddr . tcp dport vmap { 10.243.0.0/16 . 1-65535 : accept, * : drop }'),
    'fails',
    false,
  ],
  'a range of addresses and ports': [forward('ip saddr . tcp dport { 10.244.0.0/16 . 1-65535 } drop'), 'fails', false],
  'the value of all others': [
    forward('meta mark set ip saddr map { 10.9.9.9 : 0x1, * : 0x2 }', 'meta mark 2 drop'),
    'fails',
    false,
  ],
  'what was just put in, before all others': [
    [
      ...block('map seen', 'type ipv4_addr : mark', 'flags dynamic', 'elements = { * : 0x5 }'),
      ...forward(
        `${TO_TARGET} ct state new add @seen { ip saddr : 0x7 }`,
        `${TO_TARGET} ct state new meta mark set ip saddr map @seen`,
        'meta mark 0x7 drop',
      ),
    ],
    'fails',
    false,
  ],
  'what was just taken out is not there': [
    [...KNOWN, ...forward(`${TO_TARGET} delete @known { ip saddr }`, `${TO_TARGET} ip saddr != @known drop`)],
    'fails',
    false,
  ],
  'what was just put in with a value that is not known': [
    [
      ...block('map ports', 'type ipv4_addr : inet_service', 'flags dynamic'),
      ...forward('ct state new add @ports { ip saddr : tcp sport }', 'ip saddr @ports drop'),
    ],
    'unknown',
    false,
  ],
  'what first packets put in lets answers pass': [
    [
      ...NOBODY,
      ...forward('ct state new add @nobody { ip saddr }', 'ip saddr @nobody accept', 'ip daddr @nobody accept', 'drop'),
    ],
    'unknown',
    true,
  ],
  'what first packets put in drops later ones': [
    [...NOBODY, ...forward('ip saddr @nobody drop', `${TO_TARGET} add @nobody { ip saddr }`)],
    'unknown',
    false,
  ],
  'what rules put into another set': [
    [...KNOWN, ...NOBODY, ...forward('ip saddr @nobody drop', `${TO_TARGET} add @known { ip saddr }`)],
    'works',
    true,
  ],
  'a hash of the client alone that this one has': [
    forward('ct state new jhash ip saddr mod 2 seed 0x1 == 0 drop'),
    'fails',
    false,
  ],
  'a hash of the client alone that this one has not': [
    forward('ct state new jhash ip saddr mod 2 seed 0x1 == 1 drop'),
    'works',
    true,
  ],
  'a hash of more than three words': [
    forward(`ct state new jhash ip saddr . ip daddr . tcp dport . ip saddr mod 1000 seed 0x99 != ${LONG_HASH} drop`),
    'works',
    true,
  ],
  'a hash of the client with a seed of its own': [
    forward('ct state new jhash ip saddr mod 1000 != 0 drop'),
    'unknown',
    false,
  ],
  'a set with a limit for each element': [
    [
      ...block('set limited', 'type ipv4_addr', 'flags dynamic', 'limit rate over 1000/second'),
      ...forward('update @limited { ip saddr } drop'),
    ],
    'unknown',
    true,
  ],
  'a set with a limit for each element that is found': [
    [
      ...block('set limited', 'type ipv4_addr', 'limit rate over 1000/second', `elements = { ${CLIENT} }`),
      ...forward('ip saddr @limited drop'),
    ],
    'unknown',
    true,
  ],
  'a set with a counter for each element': [
    [
      ...block('set counted', 'type ipv4_addr', 'counter', `elements = { ${CLIENT} }`),
      ...forward('ip saddr @counted drop'),
    ],
    'fails',
    false,
  ],
  'state as a type of its own': [
    [
      ...block('set states', 'typeof ct state', 'flags dynamic'),
      ...forward('ct state new add @states { ct state }', 'ct state new ct state @states drop'),
    ],
    'fails',
    false,
  ],
};

it.each(Object.entries(LOOKUPS))('%s', async (_, [lines, verdict, answered]) => {
  world.run('nft', ['table inet foreign {', ...lines, '}'].join('\n'));
  faults.undo(() => world.run('nft', 'delete table inet foreign'));
  const [answer] = await world.askHere([{ destination: `${VIP}:80`, source: CLIENT }]);
  expect({ verdict: answer!.verdict, answered: await answers(client, VIP) }, answer!.cause).toEqual({
    verdict,
    answered,
  });
});
