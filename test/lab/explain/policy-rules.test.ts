import { afterAll, beforeAll, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import type { CauseCode } from '../../../src/explain/index.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Policy rules of others (several uplinks, VPNs): what they do to packets of the node's own processes, and by what
// nobody knows beforehand. No verdict may be one that a real connection contradicts.

const [VIP, HOST] = ['10.96.0.10', '10.96.0.14'];
const VIP6 = 'fd00:96::10';
const [PROCESS, NODE_PORT, NODE_PORT6] = [9000, 30_080, 30_086];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;

beforeAll(async () => {
  await node.serve({ port: PROCESS });
  const nodePort = (number: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort: number }] }) as const;
  await world.begin([
    ...served('shop/web', VIP, [on(node, web.ip())], nodePort(NODE_PORT)),
    ...served('shop/web6', VIP6, [on(node, web.ip('IPv6'))], nodePort(NODE_PORT6)),
    ...served('shop/host', HOST, [on(node, node.ip())], {}, PROCESS),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** Who connects to what: by the address that answers, and as it is asked for. */
const WAYS = {
  'a pod to a process of the node': [client, node.ip(), PROCESS],
  'a pod to a Service of the node': [client, HOST, 80],
  'a pod to a Service of a pod': [client, VIP, 80],
  'a pod to a pod': [client, web.ip(), TARGET],
  'the node to a Service of a pod': [node, VIP, 80],
  'the node to a pod': [node, web.ip(), TARGET],
  'outside to a process of the node': [outside, node.ip(), PROCESS],
  'outside to a NodePort': [outside, node.ip(), NODE_PORT],
} as const satisfies Readonly<Record<string, readonly [Host, string, number]>>;

async function ask(from: Host, ip: string, port: number) {
  const source = from === node ? 'node' : from.ip(ip.includes(':') ? 'IPv6' : 'IPv4');
  const destination = withPort(ip, port);
  const [answer] = await world.askHere([{ destination, source }]);
  return answer!;
}

const rule = (words: string) => faults.ip(`rule add ${words} prio 100`, 'rule del prio 100');
/** In front of table local. */
const ruleFirst = (words: string) => {
  faults.ip('rule add prio 150 lookup local', 'rule del prio 150');
  faults.ip('rule del prio 0', 'rule add prio 0 lookup local');
  rule(words);
};
/** Answers of the node go to a gateway that is not there. */
const otherUplink = () => {
  faults.ip('route add default via 192.168.50.77 table 77', 'route flush table 77');
  rule(`from ${node.ip()} lookup 77`);
};

it.each<[string, () => void]>([
  ['nothing for what the node sends', () => rule('iif lo unreachable')],
  ['nothing from the node’s address', () => rule(`from ${node.ip()} unreachable`)],
  ['another uplink for the node’s address', otherUplink],
  ['nothing from the endpoint', () => rule(`from ${web.ip()} unreachable`)],
  ['nothing from ports of servers', () => rule(`sport ${PROCESS} unreachable`)],
  ['nothing from ports of clients', () => rule('sport 1024-65534 unreachable')],
  ['nothing to ports of clients', () => rule('dport 32768-65534 unreachable')],
  ['nothing of some users', () => rule('uidrange 0-1000 unreachable')],
  ['nothing of other users', () => rule('uidrange 1000-2000 unreachable')],
  ['nothing to the node’s address', () => ruleFirst(`to ${node.ip()} blackhole`)],
  ['nothing that pods send to the node', () => ruleFirst(`iif cni0 to ${node.ip()} prohibit`)],
  ['nothing to the gateway of pods', () => ruleFirst('to 10.244.1.1 blackhole')],
  ['elsewhere what is for the node', () => ruleFirst(`iif cni0 to ${node.ip()} lookup main`)],
  [
    'nothing of a class of traffic that rules set',
    () => {
      rule('tos 0x10 unreachable');
      const seen = 'type filter hook prerouting priority -150; tcp dport 80 ip dscp set 4';
      faults.nft(`table ip others { chain seen { ${seen}; } }`, 'ip others');
    },
  ],
])('%s', async (_, begin) => {
  begin();
  const told: string[] = [];
  for (const [way, [from, ip, port]] of Object.entries(WAYS)) {
    world.run('conntrack', '-F');
    const answer = await ask(from, ip, port);
    const really = (await answers(from, ip, port)) ? 'works' : 'fails';
    expect(['unknown', really], `${way}: ${answer.cause}`).toContain(answer.verdict);
    told.push(answer.verdict);
  }
  expect(told).toContain('works');
  faults.mend();
});

it.each<[string, () => void, Host, string, number, CauseCode]>([
  ['way-back', () => rule(`from ${node.ip()} unreachable`), client, HOST, 80, 'way-back'],
  ['pod-route', () => rule(`from ${node.ip()} unreachable`), node, VIP, 80, 'pod-route'],
  ['no rp_filter', () => rule(`from ${web.ip()} unreachable`), outside, node.ip(), NODE_PORT, 'way-back'],
])('says which: %s', async (_, begin, from, ip, port, code) => {
  begin();
  const answer = await ask(from, ip, port);
  expect(answer, answer.cause).toMatchObject({ verdict: 'fails', code });
  expect(await answers(from, ip, port)).toBe(false);
});

it('links that forward IPv6 on their own', async () => {
  faults.sysctl('net.ipv6.conf.all.forwarding', '0');
  const [ip, port] = [node.ip('IPv6'), NODE_PORT6];
  expect(await ask(outside, ip, port)).toMatchObject({ verdict: 'fails', code: 'forwarding' });
  expect(await answers(outside, ip, port)).toBe(false);
  for (const link of ['cni0', 'eth0']) faults.sysctl(`net.ipv6.conf.${link}.force_forwarding`, '1');
  const answer = await ask(outside, ip, port);
  expect(answer.verdict, answer.cause).toBe('works');
  expect(await answers(outside, ip, port)).toBe(true);
});

it.each<[string, string, string]>([
  ['by a router', outside.ip(), 'via 192.168.50.77'],
  ['by several', outside.ip(), 'nexthop via 192.168.50.78 nexthop via 192.168.50.77'],
  ['by a router of IPv6', outside.ip('IPv6'), 'via fd00:50::77'],
  ['by several of IPv6', outside.ip('IPv6'), 'nexthop via fd00:50::77 nexthop via fd00:50::fe'],
])('answers to a client on the link that go %s', async (_, to, hops) => {
  faults.ip(`route add ${to} ${hops}`, `route del ${to}`);
  const isIPv6 = to.includes(':');
  const ip = node.ip(isIPv6 ? 'IPv6' : 'IPv4');
  for (const port of [PROCESS, isIPv6 ? NODE_PORT6 : NODE_PORT]) {
    const answer = await ask(outside, ip, port);
    expect(answer.verdict, answer.cause).toBe('unknown');
    expect(await answers(outside, ip, port)).toBe(false);
  }
  faults.mend();
  expect((await ask(outside, ip, PROCESS)).verdict).toBe('works');
});

it('answers by one of several routers, of which all are asked or one did not answer', async () => {
  const routers = (last: string) => `route replace default nexthop via 192.168.50.254 nexthop via ${last}`;
  faults.ip(routers('192.168.50.2'), 'route replace default via 192.168.50.254');
  const from = (number: number) => ({ destination: `node:${PROCESS}`, source: `198.51.100.${number}` });
  const asked = Array.from({ length: 8 }, (_, number) => from(number + 1));
  expect((await world.askHere(asked)).map(({ verdict }) => verdict)).toEqual(asked.map(() => 'works'));
  world.run('ip', ...routers('192.168.50.79').split(' '));
  faults.ip('neigh replace 192.168.50.79 dev eth0 nud failed', 'neigh del 192.168.50.79 dev eth0');
  expect((await world.askHere(asked)).map(({ verdict }) => verdict)).toEqual(asked.map(() => 'unknown'));
});

it('way-back: a client that a route leads to lo', async () => {
  for (const [ip, own, port] of [
    [outside.ip(), node.ip(), NODE_PORT],
    [outside.ip('IPv6'), node.ip('IPv6'), NODE_PORT6],
  ] as const) {
    faults.ip(`route add ${ip} dev lo`, `route del ${ip} dev lo`);
    for (const to of [PROCESS, port]) {
      const answer = await ask(outside, own, to);
      expect(['fails', 'unknown'], answer.cause).toContain(answer.verdict);
      expect(await answers(outside, own, to)).toBe(false);
    }
  }
});

it('whether a client outside has a way to pods is not known here', async () => {
  const answer = await ask(outside, web.ip(), TARGET);
  expect(answer.verdict, answer.cause).toBe('unknown');
  await expect(answers(outside, web.ip(), TARGET)).resolves.toBe(false);
});
