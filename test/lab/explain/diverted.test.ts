import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CauseCode } from '../../../src/explain/index.ts';
import { type Pod, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, vethOf } from './faults.ts';

// Packets that are led elsewhere or stopped beside the rules: by policy routing, by marks, at ports of the bridge, on links, and by the
// routes of the pods themselves. Nothing is answered, and no verdict may say that it works.

const VIP = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
const [WEB, CLIENT] = [web.ip(), client.ip()];

beforeAll(() => world.begin(served('shop/web', VIP, [on(node, WEB)])), 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

interface Diversion {
  readonly verdict: 'fails' | 'unknown';
  readonly code: CauseCode;
  /** @default the client */
  readonly from?: 'node';
  readonly begin: () => void;
}

const rule = (words: string) => faults.ip(`rule add ${words} prio 100`, 'rule del prio 100');
const port = (pod: Pod, option: string, on: string, off: string) =>
  faults.run(
    'bridge',
    `link set dev ${vethOf(node, pod)} ${option} ${on}`,
    `link set dev ${vethOf(node, pod)} ${option} ${off}`,
  );
const ingress = (text: string) => `type filter hook ${text} priority 0; tcp dport { 80, ${TARGET} } drop`;

const DIVERSIONS: Readonly<Record<string, Diversion>> = {
  'a policy rule for a port': {
    verdict: 'fails',
    code: 'no-peer-route',
    begin: () => rule(`to ${WEB} ipproto tcp dport ${TARGET} blackhole`),
  },
  'a policy rule for a mark': {
    verdict: 'fails',
    code: 'no-peer-route',
    begin: () => {
      rule('fwmark 0x77 blackhole');
      faults.nft(
        'table ip marks { chain seen { type filter hook prerouting priority -150; tcp dport 80 meta mark set 0x77; } }',
        'ip marks',
      );
    },
  },
  'a route for a mark': {
    verdict: 'fails',
    code: 'no-peer-route',
    begin: () => {
      faults.ip('route add default dev eth0 table 77', 'route flush table 77');
      rule('fwmark 0x77 lookup 77');
      faults.nft(
        'table ip marks { chain seen { type filter hook prerouting priority -150; tcp dport 80 meta mark set 0x77; } }',
        'ip marks',
      );
    },
  },
  'a pair that is plugged into nothing': {
    verdict: 'fails',
    code: 'link-down',
    begin: () => faults.ip(`link set ${vethOf(node, web)} nomaster`, `link set ${vethOf(node, web)} master cni0`),
  },
  'isolated ports': {
    verdict: 'fails',
    code: 'link-down',
    begin: () => {
      port(web, 'isolated', 'on', 'off');
      port(client, 'isolated', 'on', 'off');
    },
  },
  "the endpoint's port is blocked": {
    verdict: 'fails',
    code: 'link-down',
    begin: () => port(web, 'state', '0', '3'),
  },
  "the client's port is blocked": {
    verdict: 'fails',
    code: 'link-down',
    begin: () => port(client, 'state', '0', '3'),
  },
  'the endpoint has no route back': {
    verdict: 'fails',
    code: 'way-back',
    begin: () => faults.ip(`route add blackhole ${CLIENT}/32`, `route del blackhole ${CLIENT}/32`, web),
  },
  'the endpoint has no route back to its node': {
    verdict: 'fails',
    code: 'way-back',
    from: 'node',
    begin: () => faults.ip('rule add from all blackhole prio 50', 'rule del prio 50', web),
  },
  'the client has the address itself': {
    verdict: 'fails',
    code: 'pod-route',
    begin: () => faults.ip(`address add ${VIP}/32 dev lo`, `address del ${VIP}/32 dev lo`, client),
  },
  'a chain on the link of the client': {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () =>
      faults.nft(
        `table netdev others { chain in { ${ingress(`ingress device "${vethOf(node, client)}"`)}; } }`,
        'netdev others',
      ),
  },
  'a chain of inet on the link of the client': {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () =>
      faults.nft(
        `table inet others { chain in { ${ingress(`ingress device "${vethOf(node, client)}"`)}; } }`,
        'inet others',
      ),
  },
  'a chain on the link to the endpoint': {
    verdict: 'unknown',
    code: 'cannot-tell',
    from: 'node',
    begin: () =>
      faults.nft(
        `table netdev others { chain out { ${ingress(`egress device "${vethOf(node, web)}"`)}; } }`,
        'netdev others',
      ),
  },
  'a chain in bridges': {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () => faults.nft(`table bridge others { chain seen { ${ingress('forward')}; } }`, 'bridge others'),
  },
  'a chain on the link in the endpoint': {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () => {
      faults.nft(`table netdev others { chain in { ${ingress('ingress device "eth0"')}; } }`, 'netdev others', web);
    },
  },
};

it.each(Object.entries(DIVERSIONS))('%s', async (_, { verdict, code, from, begin }) => {
  const ask = async () => {
    const [answer] = await world.askHere([{ destination: `${VIP}:80`, source: from ?? CLIENT }]);
    return answer!;
  };
  const host = from === 'node' ? node : client;
  begin();
  const answer = await ask();
  expect(answer, answer.cause).toMatchObject({ verdict, code });
  expect(await answers(host, VIP)).toBe(false);
  faults.mend();
  const mended = await ask();
  expect(mended.verdict, mended.cause).toBe('works');
});

it('answers between pods of one bridge are not routed: what refuses them there is in nobody’s way', async () => {
  rule(`from ${WEB} blackhole`);
  const [answer] = await world.askHere([{ destination: `${VIP}:80`, source: CLIENT }]);
  expect(answer!.verdict, answer!.cause).toBe('works');
  expect(await answers(client, VIP)).toBe(true);
  faults.mend();
});
