import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../../../src/explain/index.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { Faults, vethOf } from './faults.ts';

// Matches of iptables that network policies and other pod networks ask with (kube-router, Calico, Weave, Cilium),
// beside ours in nf_tables: each verdict is held against a real connection.

const VIP = '10.96.0.10';
const NODE_PORT = 30_080;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;

interface Foreign {
  /** In front of the rules. */
  readonly sets?: readonly string[];
  /** With the program in front, but where they begin without a dash. */
  readonly rules: readonly string[];
  readonly undo?: string;
  /** Of a pod, to the ClusterIP. */
  readonly pod: Answer['verdict'];
  /** From outside, to the NodePort, which masquerades. */
  readonly outside: Answer['verdict'];
  /** Of a pod, to the endpoint's own address. @default not asked */
  readonly direct?: Answer['verdict'];
}

const dropInA = (directions: string) => `-A FORWARD -p tcp -m set --match-set a ${directions} -j DROP`;

const FOREIGN: Readonly<Record<string, Foreign>> = {
  'a set whose exception has an exception': {
    sets: ['create a hash:net', `add a ${client.ip()}`, 'add a 10.244.0.0/16 nomatch', 'add a 10.0.0.0/8'],
    rules: [dropInA('src')],
    pod: 'fails',
    outside: 'works',
  },
  'rpfilter asks for it with the mark': {
    rules: [
      'ip rule add fwmark 5 lookup 77',
      `ip route add ${client.ip()} dev lo table 77`,
      `-t raw -A PREROUTING -s ${client.ip()} -j MARK --set-mark 5`,
      `-t raw -A PREROUTING -s ${client.ip()} -m rpfilter --validmark --invert -j DROP`,
      '-t mangle -A PREROUTING -j MARK --set-mark 0',
    ],
    undo: 'ip rule del fwmark 5; ip route flush table 77',
    pod: 'fails',
    outside: 'works',
  },
  'what the bridge itself sends on': {
    rules: ['-A FORWARD -p tcp -m physdev --physdev-is-bridged -j DROP'],
    pod: 'fails',
    direct: 'fails',
    outside: 'works',
  },
  'what it does not': {
    rules: ['-A FORWARD -p tcp -m physdev ! --physdev-is-bridged -j DROP'],
    pod: 'works',
    direct: 'works',
    outside: 'fails',
  },
  'ports of the bridge': {
    rules: [
      `-A FORWARD -p tcp -m physdev --physdev-in ${vethOf(node, web)} --physdev-out ${vethOf(node, client)} -j DROP`,
    ],
    pod: 'fails',
    direct: 'fails',
    outside: 'works',
  },
  'other ports of the bridge': {
    rules: [
      `-A FORWARD -p tcp -m physdev --physdev-in ${vethOf(node, client)} --physdev-out ${vethOf(node, client)} -j DROP`,
      '-t mangle -A PREROUTING -p tcp -m physdev --physdev-is-out -j DROP',
    ],
    pod: 'works',
    direct: 'works',
    outside: 'works',
  },
  'a transparent socket of this node': {
    rules: [
      '-t mangle -A PREROUTING -m socket --transparent -j MARK --set-mark 0x200',
      '-A FORWARD -m mark --mark 0x200 -j DROP',
    ],
    pod: 'works',
    direct: 'works',
    outside: 'works',
  },
  'ports that the kernel gives to nobody who asks for none': {
    rules: [
      '-A FORWARD -p tcp --sport 1024:2047 -j DROP',
      '-t mangle -A PREROUTING -p tcp -m multiport --sports 53,88 -j DROP',
    ],
    pod: 'works',
    direct: 'works',
    outside: 'unknown',
  },
  'each second packet is refused, whichever connection it is of': {
    rules: [
      `-A FORWARD -p tcp --dport ${TARGET} -m statistic --mode nth --every 2 --packet 0 -j REJECT --reject-with tcp-reset`,
    ],
    pod: 'unknown',
    outside: 'unknown',
  },
  // As strongSwan writes them for a connection (leftfirewall), and shorewall for hosts without one.
  'what IPsec has unwrapped, or is to wrap': {
    rules: [
      '-A FORWARD -p tcp -m policy --dir in --pol ipsec --reqid 1 --proto esp -j DROP',
      '-A FORWARD -p tcp -m policy --dir out --pol ipsec -j DROP',
      '-A FORWARD -p tcp -m policy --dir in --pol none -j ACCEPT',
      '-A FORWARD -p tcp -j DROP',
    ],
    pod: 'works',
    outside: 'works',
  },
  'what IPsec has not unwrapped': {
    rules: ['-A FORWARD -p tcp -m policy --dir in --pol none -j DROP'],
    pod: 'fails',
    outside: 'fails',
  },
  'what IPsec has not unwrapped, where it may': {
    rules: [
      'ip xfrm state allocspi src 192.0.2.1 dst 192.0.2.2 proto esp mode tunnel min 0x100 max 0x200',
      '-A FORWARD -p tcp -m policy --dir in --pol ipsec -j DROP',
    ],
    undo: 'ip xfrm state flush',
    pod: 'unknown',
    outside: 'unknown',
  },
  // Of chain tcpflags of shorewall 5.2.8, as for all interfaces of its examples.
  'a port that no client has': {
    rules: [
      '-A FORWARD -p tcp --sport 0 --tcp-flags FIN,SYN,RST,ACK SYN -j DROP',
      '-A INPUT -p tcp -m multiport --sports 0 -j DROP',
    ],
    pod: 'works',
    direct: 'works',
    outside: 'works',
  },
};

beforeAll(async () => {
  const port = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  await world.begin(served('shop/web', VIP, [on(node, web.ip())], port));
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const run = (line: string) => world.run('sh', '-c', line);

describe.each(['iptables-legacy', 'iptables-nft'])('%s', (program) => {
  it.each(Object.entries(FOREIGN))('%s', async (_, { sets = [], rules, undo, ...wanted }) => {
    faults.undo(() => {
      for (const table of ['raw', 'mangle', 'nat', 'filter']) run(`${program} -t ${table} -F`);
      run(`ipset destroy; conntrack -F 2>/dev/null; ${undo ?? 'true'}`);
    });
    for (const line of sets) run(`ipset ${line}`);
    for (const line of rules) run(line.startsWith('-') ? `${program} ${line}` : line);
    const asked: readonly [Host, string, number, Answer['verdict'] | undefined][] = [
      [client, VIP, 80, wanted.pod],
      [outside, node.ip(), NODE_PORT, wanted.outside],
      [client, web.ip(), TARGET, wanted.direct],
    ];
    for (const [from, ip, port, verdict] of asked) {
      if (verdict === undefined) continue;
      const [answer] = await world.askHere([{ destination: `${ip}:${port}`, source: from.ip() }]);
      expect(answer!.verdict, `${from.name}: ${answer!.cause}`).toBe(verdict);
      const outcomes = await from.connectMany({ ip, port, protocol: 'TCP' }, 4, { timeoutMs: 800 });
      const good = outcomes.filter(({ kind }) => kind === 'answered').length;
      if (verdict !== 'unknown') expect(good, from.name).toBe(verdict === 'works' ? 4 : 0);
    }
  });
});
