import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Pod, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Rules and routes within the pods, by which they do not take what comes, and routes that lead to somebody who would have to send on.

const VIP = '10.96.0.10';
const VIP6 = 'fd00:96::10';
const NODE_PORT = 30_080;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, web2, client, outside } = world;
const [WEB, CLIENT, NOBODY] = [web.ip(), client.ip(), '10.244.1.250'];
const [WEB6, CLIENT6] = [web.ip('IPv6'), client.ip('IPv6')];

beforeAll(() => {
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  return world.begin([
    ...served('shop/web', VIP, [on(node, WEB)], ports),
    ...served('shop/web6', VIP6, [on(node, WEB6)]),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const route = (words: string, pod?: Pod) => faults.ip(`route add ${words}`, `route del ${words}`, pod);
const rule = (words: string, pod: Pod) => faults.ip(`rule add ${words} prio 100`, 'rule del prio 100', pod);
const nextHops = (words: string) => {
  faults.ip('nexthop add id 5 dev cni0', 'nexthop del id 5');
  faults.ip(`nexthop add id 6 via ${NOBODY} dev cni0 onlink`, 'nexthop del id 6');
  faults.ip('nexthop add id 7 group 5/6', 'nexthop del id 7');
  route(words);
};
/** The rule of the table of local addresses is the first one until then. */
const beforeLocal = (words: string, pod: Pod) => {
  const ip = (text: string) => void pod.namespace.run('ip', ...text.split(' '));
  faults.undo(() => ip('rule del prio 10'));
  ip('rule add prio 10 lookup local');
  faults.undo(() => ip('rule add prio 0 lookup local'));
  ip('rule del prio 0');
  faults.ip(`rule add prio 5 ${words}`, 'rule del prio 5', pod);
};
const noLocalRoute = (pod: Pod) => {
  const [words, ip] = [`local ${pod.ip()} dev eth0 table local`, pod.ip()];
  faults.ip(`route del ${words}`, `route add ${words} proto kernel scope host src ${ip}`, pod);
};

it.each<[name: string, told: 'fails' | 'unknown', begin: () => void]>([
  ['nothing', 'fails', () => {}],
  [
    'a rule for the port that the endpoint answers from',
    'fails',
    () => rule(`ipproto tcp sport ${TARGET} blackhole`, web),
  ],
  ['an endpoint that takes nothing from its link', 'fails', () => beforeLocal('iif eth0 prohibit', web)],
  ['a client that takes nothing from its link', 'fails', () => beforeLocal('iif eth0 prohibit', client)],
  ['an endpoint without a local route to itself', 'fails', () => noLocalRoute(web)],
  ['a client without a local route to itself', 'fails', () => noLocalRoute(client)],
  ['a strict endpoint with rp_filter', 'fails', () => faults.sysctl('net.ipv4.conf.all.rp_filter', '1', web)],
  ['an endpoint that answers by nobody', 'unknown', () => route(`${CLIENT}/32 via ${NOBODY} dev eth0 onlink`, web)],
  [
    'an endpoint that answers by another pod',
    'unknown',
    () => route(`${CLIENT}/32 via ${web2.ip()} dev eth0 onlink`, web),
  ],
  ['a client that sends by nobody', 'unknown', () => route(`${VIP}/32 via ${NOBODY} dev eth0 onlink`, client)],
  ['a node that sends by nobody', 'unknown', () => route(`${WEB}/32 via ${NOBODY} dev cni0 onlink`)],
  [
    'a node that sends by nobody of IPv6',
    'unknown',
    () => route(`${WEB}/32 via inet6 fd00:10:244:1::dead dev cni0 onlink`),
  ],
  [
    'a node that sends by several',
    'unknown',
    () => route(`${WEB}/32 nexthop dev cni0 nexthop via ${NOBODY} dev cni0 onlink`),
  ],
  ['a node that sends by a group of next hops', 'unknown', () => nextHops(`${WEB}/32 nhid 7`)],
  ['a client whose packets nobody may send on', 'unknown', () => faults.sysctl('net.ipv4.ip_default_ttl', '1', client)],
  ['an endpoint whose answers nobody may send on', 'unknown', () => faults.sysctl('net.ipv4.ip_default_ttl', '1', web)],
  [
    'a client of IPv6 whose packets nobody may send on',
    'unknown',
    () => faults.sysctl('net.ipv6.conf.eth0.hop_limit', '1', client),
  ],
  [
    'a route of a client for which nobody may send on',
    'unknown',
    () => route(`${VIP}/32 via 10.244.1.1 dev eth0 hoplimit 1`, client),
  ],
  [
    'a client that sends from another address',
    'unknown',
    () => {
      faults.ip('address add 10.9.9.9/32 dev lo', 'address del 10.9.9.9/32 dev lo', client);
      route(`${VIP}/32 via 10.244.1.1 dev eth0 src 10.9.9.9`, client);
    },
  ],
  [
    'a route of a client that leaves hardly room for answers',
    'unknown',
    () => route(`${VIP}/32 via 10.244.1.1 dev eth0 window 1`, client),
  ],
  [
    'a node that wraps what it sends',
    'unknown',
    () =>
      faults.ip(
        `-6 route add ${WEB6}/128 encap seg6 mode encap segs fd00::1 dev cni0`,
        `-6 route del ${WEB6}/128 dev cni0`,
      ),
  ],
])('%s: what is told is what connections do', async (_, told, begin) => {
  begin();
  for (const [host, source, ip, at, destination] of [
    [client, CLIENT, WEB, TARGET, `${WEB}:${TARGET}`],
    [client, CLIENT, VIP, 80, `${VIP}:80`],
    [client, CLIENT6, VIP6, 80, `[${VIP6}]:80`],
    [node, 'node', VIP, 80, `${VIP}:80`],
    [outside, outside.ip(), node.ip(), NODE_PORT, `node:${NODE_PORT}`],
  ] as const) {
    world.run('conntrack', '-F');
    const works = await answers(host, ip, at);
    const [answer] = await world.askHere([{ destination, source }]);
    // One of several ways may lead to the endpoint.
    const right = told === 'fails' ? [works ? 'works' : 'fails'] : works ? ['works', 'unknown'] : ['unknown'];
    expect(right, `${source} to ${destination}: ${answer!.cause}`).toContain(answer!.verdict);
  }
});
