import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Packets that rules alter without translating them, what the kernel looks at and what not when it routes them, and rules that are met
// elsewhere: by ARP, on the loopback link, by packets with data alone. No verdict may be one that a real connection contradicts.

const VIP = '10.96.0.10';
const VIP6 = 'fd00:96::10';
/** Of a Service whose endpoint is the node itself. */
const LOCAL = '10.96.0.11';
const NODE_PORT = 30_080;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;
const [WEB, CLIENT] = [web.ip(), client.ip()];

beforeAll(async () => {
  await node.serve({ port: TARGET });
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  await world.begin([
    ...served('shop/web', VIP, [on(node, WEB)], ports),
    ...served('shop/web6', VIP6, [on(node, web.ip('IPv6'))]),
    ...served('shop/local', LOCAL, [on(node, node.ip())]),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** Who connects to what. */
const CONNECTIONS = {
  client: [client, CLIENT, VIP, 80, `${VIP}:80`],
  'client by IPv6': [client, client.ip('IPv6'), VIP6, 80, `[${VIP6}]:80`],
  node: [node, 'node', VIP, 80, `${VIP}:80`],
  'node to itself': [node, 'node', LOCAL, 80, `${LOCAL}:80`],
  outside: [outside, outside.ip(), node.ip(), NODE_PORT, `node:${NODE_PORT}`],
} as const satisfies Record<string, readonly [Host, string, string, number, string]>;

interface Altered {
  readonly begin: () => void;
  readonly verdict: 'works' | 'fails' | 'unknown';
  readonly answered: boolean;
  /** @default the client */
  readonly from?: keyof typeof CONNECTIONS;
}

const RAW = 'filter hook prerouting priority -300';
const MANGLE = 'filter hook prerouting priority -150';
const FORWARD = 'filter hook forward priority 0';
/** A table of others, with one rule. */
const chain = (hook: string, rule: string, family = 'ip') => {
  faults.nft(`table ${family} others { chain seen { type ${hook}; ${rule}; } }`, `${family} others`);
};
const ipRule = (words: string) => faults.ip(`rule add ${words} prio 100`, 'rule del prio 100');
const marked = (hook: string, mark: string) => () => {
  ipRule('fwmark 0x77 blackhole');
  chain(hook, mark);
};
const ANSWERS = `ip saddr ${WEB} tcp sport ${TARGET}`;
const altered = (hook: string, rule: string, from?: Altered['from'], family?: string): Altered => ({
  begin: () => chain(hook, rule, family),
  verdict: 'unknown',
  answered: false,
  ...(from && { from }),
});
const passes = (hook: string, rule: string, from?: Altered['from'], family?: string): Altered => ({
  ...altered(hook, rule, from, family),
  verdict: 'works',
  answered: true,
});

const ALTERED: Readonly<Record<string, Altered>> = {
  'another sender, before tracking': altered(RAW, `ip saddr ${CLIENT} tcp dport 80 ip saddr set 10.244.1.222`),
  'another receiver, before tracking': altered(
    RAW,
    `ip daddr ${VIP} tcp dport 80 ip daddr set ${WEB} tcp dport set ${TARGET}`,
  ),
  'another receiver in output, before tracking': altered(
    'filter hook output priority -300',
    `ip daddr ${VIP} tcp dport 80 ip daddr set ${WEB} tcp dport set ${TARGET}`,
    'node',
  ),
  'another sender of answers': altered(RAW, `${ANSWERS} ip saddr set 10.244.1.77`),
  'another port of answers': altered(RAW, `${ANSWERS} tcp sport set 8099`),
  'no hop left': altered(MANGLE, `tcp dport ${NODE_PORT} ip ttl set 1`, 'outside'),
  'no hop left of IPv6, of frames of a bridge, which need none': {
    ...altered(MANGLE, 'tcp dport 80 ip6 hoplimit set 1', 'client by IPv6', 'ip6'),
    answered: true,
  },
  'another sequence number': altered(FORWARD, `tcp dport ${TARGET} tcp sequence set 0`),
  'other flags': altered(FORWARD, `tcp dport ${TARGET} tcp flags set fin`),
  'another length': altered(FORWARD, `tcp dport ${TARGET} ip length set 20`),
  'no window in answers': altered(FORWARD, `tcp sport ${TARGET} tcp window set 0`),
  'another machine': altered(FORWARD, `tcp dport ${TARGET} ether daddr set 02:00:00:00:00:07`, 'client', 'inet'),
  'as many hops as hosts begin with': passes(MANGLE, `tcp dport ${NODE_PORT} ip ttl set 64`, 'outside'),
  'hops of IPv6': passes(MANGLE, 'tcp dport 80 ip6 hoplimit set 64', 'client by IPv6', 'ip6'),
  'another class': passes(MANGLE, 'tcp dport 80 ip dscp set cs1'),
  'another class of IPv6': passes(MANGLE, 'tcp dport 80 ip6 dscp set cs1', 'client by IPv6', 'ip6'),
  'no congestion told': passes(MANGLE, 'tcp dport 80 ip ecn set not-ect'),
  'for another host, as they say': altered(MANGLE, `tcp dport ${NODE_PORT} meta pkttype set other`, 'outside'),
  'a mark that no route is looked up for': {
    begin: marked('filter hook output priority 0', `tcp dport { 80, ${TARGET} } meta mark set 0x77`),
    verdict: 'works',
    answered: true,
    from: 'node',
  },
  'a mark that a route is looked up for': {
    begin: marked('route hook output priority 0', `tcp dport { 80, ${TARGET} } meta mark set 0x77`),
    verdict: 'fails',
    answered: false,
    from: 'node',
  },
  'a mark before translation, which looks up a route': {
    begin: marked('filter hook output priority -150', 'tcp dport 80 meta mark set 0x77'),
    verdict: 'fails',
    answered: false,
    from: 'node',
  },
  'a mark that a reverse lookup asks for': {
    begin: () => {
      faults.ip('route add blackhole default table 88', 'route flush table 88');
      ipRule(`fwmark 0x5 to ${CLIENT} lookup 88`);
      chain(MANGLE, 'tcp dport 80 meta mark set 0x5; fib saddr . mark . iif oif missing drop');
    },
    verdict: 'fails',
    answered: false,
  },
  'no packets of the endpoint but answers and data': passes(
    FORWARD,
    `ip saddr ${WEB} tcp flags & (syn | psh) == 0 drop`,
  ),
  'ARP, where none is needed': passes('filter hook input priority 0', 'drop', 'client by IPv6', 'arp'),
  'a chain of arp without a rule': passes('filter hook input priority 0', 'policy accept', 'client', 'arp'),
  'a chain on a loopback link that nobody uses': passes(
    'filter hook ingress device lo priority 0',
    'drop',
    'client',
    'netdev',
  ),
};

it.each(Object.keys(CONNECTIONS) as (keyof typeof CONNECTIONS)[])(
  'without anything in the way: from %s',
  async (from) => {
    const [host, source, ip, port, destination] = CONNECTIONS[from];
    const [answer] = await world.askHere([{ destination, source }]);
    expect(answer!.verdict, answer!.cause).toBe('works');
    expect(await answers(host, ip, port)).toBe(true);
  },
);

it.each(Object.entries(ALTERED))('%s', async (_, { begin, verdict, answered, from = 'client' }) => {
  const [host, source, ip, port, destination] = CONNECTIONS[from];
  begin();
  for (const { namespace } of [node, web, client]) namespace.run('ip', 'neigh', 'flush', 'all');
  world.run('conntrack', '-F');
  const [answer] = await world.askHere([{ destination, source }]);
  expect({ verdict: answer!.verdict, answered: await answers(host, ip, port) }, answer!.cause).toEqual({
    verdict,
    answered,
  });
});
