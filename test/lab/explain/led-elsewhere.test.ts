import { afterAll, beforeAll, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Marks that lead what comes after a connection's first packet elsewhere, and may do so: to the node itself, as what is for a transparent
// proxy, or to another next hop. No verdict may be one that a real connection contradicts.

useOwnLockFile();
const [VIP, NODE_PORT, LOCAL_PORT] = ['10.96.0.10', 30_080, 30_081];
const TRIES = 16;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, far, outside } = world;

beforeAll(() => {
  const port = (nodePort: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort }] }) as const;
  return world.begin([
    ...served('shop/web', VIP, [on(node, web.ip())], port(NODE_PORT)),
    ...served('shop/local', '10.96.0.11', [on(node, web.ip())], {
      ...port(LOCAL_PORT),
      externalTrafficPolicy: 'Local',
    }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const WAYS = {
  'outside to NodePort': [outside, node.ip(), NODE_PORT],
  'outside to NodePort, Local': [outside, node.ip(), LOCAL_PORT],
  'pod to Service': [client, VIP, 80],
  'pod of another node to pod': [far, web.ip(), TARGET],
} as const satisfies Readonly<Record<string, readonly [Host, string, number]>>;
type Way = keyof typeof WAYS;
const NODE_PORTS = ['outside to NodePort', 'outside to NodePort, Local'] as const;

async function ask(way: Way) {
  const [from, ip, port] = WAYS[way];
  world.run('conntrack', '-F');
  const [answer] = await world.askHere([{ destination: withPort(ip, port), source: from.ip() }]);
  return answer!;
}

const marking = (rule: string) => {
  const chain = `type filter hook prerouting priority -150; ${rule};`;
  faults.nft(`table inet theirs { chain seen { ${chain} } }`, 'inet theirs');
};
const routeMarked = (mark: string, route: string) => {
  faults.ip(`route add ${route} table 100`, 'route flush table 100');
  faults.ip(`rule add fwmark ${mark} lookup 100`, `rule del fwmark ${mark}`);
};
/** Documentation/networking/tproxy.rst of the kernel. */
const takeMarked = () => routeMarked('1', 'local 0.0.0.0/0 dev lo');
const divert = () => {
  const mangle = (doing: string, undoing: string) =>
    faults.run('iptables-legacy', `-t mangle ${doing}`, `-t mangle ${undoing}`);
  mangle('-N DIVERT', '-X DIVERT');
  for (const rule of ['DIVERT -j MARK --set-mark 1', 'DIVERT -j ACCEPT', 'PREROUTING -p tcp -m socket -j DIVERT'])
    mangle(`-A ${rule}`, `-D ${rule}`);
};

it.each<[string, () => void]>([
  ['what a socket of the node gets', divert],
  ['the same by nft', () => marking('meta l4proto tcp socket wildcard 0 meta mark set 1 accept')],
  ['what is more than a limit', () => marking('iifname cni0 limit rate over 1000000/second meta mark set 1 accept')],
])('answers that may be taken by the node: %s', async (_, begin) => {
  takeMarked();
  begin();
  for (const way of NODE_PORTS) {
    const answer = await ask(way);
    expect(answer, answer.cause).toMatchObject({ verdict: 'unknown' });
    expect(await answers(...WAYS[way])).toBe(true);
  }
});

it('answers that the node takes by chance', async () => {
  takeMarked();
  const rule = 'PREROUTING -i cni0 -p tcp -m statistic --mode random --probability 0.5 -j MARK --set-mark 1';
  faults.run('iptables-legacy', `-t mangle -A ${rule}`, `-t mangle -D ${rule}`);
  for (const way of NODE_PORTS) {
    const answer = await ask(way);
    expect(answer, answer.cause).toMatchObject({ verdict: 'partly', code: 'way-back' });
    const [from, ip, port] = WAYS[way];
    const options = { timeoutMs: 500, concurrency: TRIES };
    const outcomes = await from.connectMany({ ip, port, protocol: 'TCP' }, TRIES, options);
    expect(new Set(outcomes.map(({ kind }) => kind === 'answered')).size).toBe(2);
  }
});

it('answers after the first that the node takes', async () => {
  takeMarked();
  marking('iifname cni0 tcp flags & (syn | ack) == ack meta mark set 1');
  for (const way of NODE_PORTS) {
    const answer = await ask(way);
    expect(answer, answer.cause).toMatchObject({ verdict: 'fails', code: 'way-back' });
    expect(answer.cause).toContain('go by lo, where nobody else is');
    expect(await answers(...WAYS[way])).toBe(false);
  }
});

const ACKS = 'tcp flags & (syn | ack) == ack';
/** Nobody has the address. */
const byNobody = (of: Host) => routeMarked('0x66', `${of.ip()} via 10.244.1.250 dev cni0`);

it.each<[string, readonly Way[], () => void]>([
  [
    'packets after the first',
    ['outside to NodePort', 'pod to Service', 'pod of another node to pod'],
    () => marking(`${ACKS} meta mark set 0x66`),
  ],
  [
    'those of a connection that is marked',
    ['outside to NodePort'],
    () => marking(`ct state new tcp dport ${NODE_PORT} ct mark set 0x66; meta mark set ct mark`),
  ],
])('another next hop on the same link: %s', async (_, ways, begin) => {
  byNobody(web);
  begin();
  for (const way of ways) {
    const answer = await ask(way);
    expect(answer, answer.cause).toMatchObject({ verdict: 'unknown' });
    expect(answer.cause).toContain('go by 10.244.1.250');
    const [from, ip, port] = WAYS[way];
    expect(await answers(from, ip, port)).toBe(false);
  }
});

it('one of several next hops, where later packets do not have the mark of the first', async () => {
  faults.ip('link add several type veth peer name nobody', 'link del several');
  for (const end of ['several', 'nobody']) faults.ip(`link set ${end} up`, `link set ${end} down`);
  faults.ip(`route add ${web.ip()} nexthop dev cni0 nexthop dev several`, `route del ${web.ip()}`);
  for (const way of ['outside to NodePort', 'pod of another node to pod'] as const) {
    const answer = await ask(way);
    const [from, ip, port] = WAYS[way];
    // The kernel takes one of them by both addresses, and tells which of the first packet's.
    const really = (await answers(from, ip, port)) ? 'works' : 'fails';
    expect(['unknown', really], answer.cause).toContain(answer.verdict);
    expect(answer.cause).not.toContain('packets after the first, marked 0x0');
  }
});

it('another next hop on the way to another node, which an attempt without data does not see', async () => {
  routeMarked('0x66', `${far.ip()} via 192.168.50.250`);
  marking(`${ACKS} meta mark set 0x66`);
  const destination = withPort(far.ip(), TARGET);
  const answer = await world.ask(destination, client.ip(), '--probe');
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown' });
  expect(await answers(client, far.ip(), TARGET)).toBe(false);
});
