import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Answer } from '../../../src/explain/index.ts';
import { type Host, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults, vethOf } from './faults.ts';

// By what neighbours of IPv6 ask for each other, beside the rules that they meet: an address of the link, and who hears them.

const VIP = 'fd00:96::10';
const LOCAL = 'fd00:96::11';
const [NODE_PORT, LOCAL_PORT, OWN_PORT, TARGET] = [30_080, 30_081, 9090, 8080];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;
const [WEB, CLIENT, OUTSIDE] = [web.ip('IPv6'), client.ip('IPv6'), outside.ip('IPv6')];
const UPLINK = node.ip('IPv6');

beforeAll(async () => {
  const ports = (nodePort: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort }] }) as const;
  await world.begin([
    ...served('shop/web', VIP, [on(node, WEB)], ports(NODE_PORT)),
    ...served('shop/local', LOCAL, [on(node, WEB)], { ...ports(LOCAL_PORT), externalTrafficPolicy: 'Local' }),
  ]);
  await node.serve({ port: OWN_PORT });
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const shown = (host: Host, ...words: string[]) => JSON.parse(host.namespace.run('ip', '-j', ...words))[0];
const macOf = (host: Host, device: string) => shown(host, 'link', 'show', device).address as string;
const GATEWAY = () => shown(client, '-6', 'route', 'show', 'default').gateway as string;

/** Nobody knows anybody, but for what is told here. */
function forget(): void {
  for (const { namespace } of [node, web, client, outside]) {
    for (const nud of [[], ['nud', 'permanent']]) namespace.run('ip', '-6', 'neigh', 'flush', 'all', ...nud);
  }
  node.namespace.run('conntrack', '-F');
}
/** Who is known, or looked for, to whom. */
const acquaintances = () =>
  [node, web, client, outside].map(({ namespace }) => {
    const shown = JSON.parse(namespace.run('ip', '-6', '-j', 'neigh', 'show')) as {
      dst: string;
      lladdr?: string;
    }[];
    return shown.map(({ dst, lladdr }) => `${dst} ${lladdr}`).sort();
  });
const knows = (host: Host, ip: string, device: string, whose: Host, its: string) =>
  host.namespace.run('ip', 'neigh', 'replace', ip, 'lladdr', macOf(whose, its), 'dev', device, 'nud', 'reachable');
const nodeKnows = (pod: Host, ip: string) => knows(node, ip, 'cni0', pod, 'eth0');
const clientKnowsGateway = () => knows(client, GATEWAY(), 'eth0', node, 'cni0');

const withoutLinkLocal = (device = 'cni0', host: Host = node) => {
  const own = shown(host, '-6', 'addr', 'show', 'dev', device).addr_info as { scope: string; local: string }[];
  const { local } = own.find(({ scope }) => scope === 'link')!;
  faults.ip(`addr del ${local}/64 dev ${device}`, `addr add ${local}/64 dev ${device} nodad`, host);
};

/** Who asks for what: all that are held against a connection. */
const QUESTIONS: readonly (readonly [Host, string, string, number, string])[] = [
  [client, CLIENT, WEB, TARGET, `[${WEB}]:${TARGET}`],
  [client, CLIENT, VIP, 80, `[${VIP}]:80`],
  [client, CLIENT, UPLINK, OWN_PORT, `[${UPLINK}]:${OWN_PORT}`],
  [node, 'node', VIP, 80, `[${VIP}]:80`],
  [outside, OUTSIDE, UPLINK, NODE_PORT, `node:${NODE_PORT}`],
  [outside, OUTSIDE, UPLINK, LOCAL_PORT, `node:${LOCAL_PORT}`],
];

/** Once with nobody known to anybody, but for what is told, before it is asked; and the same before the connection. */
async function compare([host, source, ip, at, destination]: (typeof QUESTIONS)[number], known: () => void) {
  let answer: Answer | undefined;
  let [before, after] = ['', ''];
  // The end of an earlier connection may have somebody look for, or hear of, whom he had just forgotten.
  for (let tries = 0; !answer || (before !== after && tries < 10); tries++) {
    for (const step of [forget, known]) step();
    before = JSON.stringify(acquaintances());
    [answer] = await world.askHere([{ destination, source }]);
    after = JSON.stringify(acquaintances());
  }
  for (const step of [forget, known]) step();
  const verdict = (await answers(host, ip, at)) ? 'works' : 'fails';
  return {
    verdict,
    answer,
    text: `${source} to ${destination} ${verdict}: ${answer.verdict} ${answer.cause}`,
  };
}

it.each<[string, () => void, () => void]>([
  ['nothing', () => {}, () => {}],
  [
    'pods without link-local address',
    () => {
      for (const pod of [web, client]) withoutLinkLocal('eth0', pod);
    },
    () => {},
  ],
  ['a bridge without link-local address', () => withoutLinkLocal(), () => {}],
  ['the same, of a node that knows the endpoint', () => withoutLinkLocal(), () => nodeKnows(web, WEB)],
  ['the same, and a client that knows its gateway', () => withoutLinkLocal(), clientKnowsGateway],
  [
    'the same, and a client that knows its gateway, where the node knows the endpoint',
    () => withoutLinkLocal(),
    () => {
      clientKnowsGateway();
      nodeKnows(web, WEB);
    },
  ],
  [
    'rules against questions of the node, and a client that knows its gateway, where the node knows the endpoint',
    () => {
      const dropped = 'OUTPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j DROP';
      faults.run('ip6tables-legacy', `-A ${dropped}`, `-D ${dropped}`);
    },
    () => {
      clientKnowsGateway();
      nodeKnows(web, WEB);
    },
  ],
])('%s: what is told is what connections do', async (_, begin, known) => {
  begin();
  const compared = [];
  for (const question of QUESTIONS) compared.push(await compare(question, known));
  expect(compared.filter(({ verdict, answer }) => answer.verdict !== verdict).map(({ text }) => text)).toEqual([]);
});

it('of a node that has its address elsewhere, and no link-local one towards its clients, it cannot be told', async () => {
  faults.ip(`addr del ${UPLINK}/64 dev eth0`, `addr add ${UPLINK}/64 dev eth0 nodad`);
  faults.ip(`addr add ${UPLINK}/128 dev lo`, `addr del ${UPLINK}/128 dev lo`);
  faults.ip('route add fd00:50::/64 dev eth0', 'route del fd00:50::/64 dev eth0');
  const question = QUESTIONS.find(([host]) => host === outside)!;
  const known = () => knows(outside, UPLINK, 'eth0', node, 'eth0');
  const works = await compare(question, known);
  expect(works, works.text).toMatchObject({ verdict: 'works', answer: { verdict: 'works' } });
  withoutLinkLocal('eth0');
  const fails = await compare(question, known);
  expect(fails, fails.text).toMatchObject({ verdict: 'fails', answer: { verdict: 'unknown' } });
});

type Compared = Awaited<ReturnType<typeof compare>>;

/** Of addresses that end in less than 100 (hex). */
const groupOf = (ip: string) => `ff02::1:ff00:${ip.split(':').at(-1)}`;
/** Ports of the bridge, or itself, and the addresses that are looked for there. */
const LISTENERS = () => [
  [vethOf(node, web), WEB] as const,
  [vethOf(node, client), CLIENT] as const,
  ['cni0', GATEWAY()] as const,
];
const isHeard = ([at, ip]: readonly [string, string]) =>
  world.run('bridge', 'mdb', 'show', 'dev', 'cni0').includes(`port ${at} grp ${groupOf(ip)} `);
/** What the bridge has heard of who listens at a port is gone until it is told anew. */
const unheard = (at: string, ip: string) =>
  world.run('bridge', 'mdb', 'del', 'dev', 'cni0', 'port', at, 'grp', groupOf(ip), ...(at === 'cni0' ? [] : ['temp']));
/** Asks once, and not again during the test; what is heard counts a second later. */
const ONCE = 'mcast_query_response_interval 100 mcast_query_interval 100000 mcast_startup_query_interval 100000';
const DEFAULT = 'mcast_query_response_interval 1000 mcast_query_interval 12500 mcast_startup_query_interval 3125';
const ownQuerier = () => {
  faults.ip(`link set cni0 type bridge ${ONCE}`, `link set cni0 type bridge ${DEFAULT}`);
  faults.ip('link set cni0 type bridge mcast_querier 1', 'link set cni0 type bridge mcast_querier 0');
};
const otherQuerier = () => {
  faults.ip('link add br9 type bridge', 'link del br9');
  faults.ip('link add q0 type veth peer name q1', 'link del q0');
  for (const words of ['br9 addrgenmode none', 'q1 master br9 up', 'q0 master cni0 up', `br9 up type bridge ${ONCE}`])
    node.namespace.run('ip', 'link', 'set', ...words.split(' '));
  // Of several who ask the one with the lowest address counts.
  node.namespace.run('ip', 'addr', 'add', 'fe80::1/64', 'dev', 'br9', 'nodad');
  node.namespace.run('ip', 'link', 'set', 'br9', 'type', 'bridge', 'mcast_querier', '1');
};
const keepsAll = () =>
  faults.ip('link set cni0 type bridge mcast_snooping 0', 'link set cni0 type bridge mcast_snooping 1');

it.each<[string, () => void, () => void, () => void, number]>([
  ['all is heard', ownQuerier, () => {}, () => {}, 0],
  ['the endpoint is not', ownQuerier, () => unheard(vethOf(node, web), WEB), () => {}, 5],
  [
    'nor is it, and is known',
    ownQuerier,
    () => unheard(vethOf(node, web), WEB),
    () => {
      nodeKnows(web, WEB);
      knows(client, WEB, 'eth0', web, 'eth0');
    },
    0,
  ],
  ['the node is not', ownQuerier, () => unheard('cni0', GATEWAY()), () => {}, 3],
  [
    'the endpoint is not, on a bridge that does not care',
    ownQuerier,
    () => {
      unheard(vethOf(node, web), WEB);
      keepsAll();
    },
    () => {},
    0,
  ],
  // The last one, as it counts for minutes.
  ['the endpoint is not, where somebody else asks', otherQuerier, () => unheard(vethOf(node, web), WEB), () => {}, 5],
])('of who listens on a bridge that sends to listeners alone, %s', async (_, querier, begin, known, lost) => {
  querier();
  // All have answered by then, and what they said is heeded.
  await new Promise((resolve) => setTimeout(resolve, patient(3000)));
  expect(LISTENERS().filter((one) => !isHeard(one))).toEqual([]);
  begin();
  const compared: Compared[] = [];
  for (const question of QUESTIONS) compared.push(await compare(question, known));
  const isRight = ({ verdict, answer }: Compared) => answer.verdict === (verdict === 'works' ? 'works' : 'unknown');
  expect(compared.filter((one) => !isRight(one)).map(({ text }) => text)).toEqual([]);
  expect(compared.filter(({ verdict }) => verdict === 'fails')).toHaveLength(lost);
});
