import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../../../src/explain/index.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { Faults } from './faults.ts';
import { openPacketQueue } from './packet-queue.ts';

// Rules of iptables that are easily taken for something else, beside ours in nf_tables: no verdict may be one that real
// connections contradict.

const VIP = '10.96.0.10';
const NODE_PORT = 30_080;
/** Of ten connections made at once all are alike where chance has no part. */
const TRIES = 10;

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;

type Verdict = Answer['verdict'];
interface Foreign {
  /** In front of the rules. */
  readonly sets?: readonly string[];
  /** `IPT` stands for the program. */
  readonly rules: readonly string[];
  /** Of a pod, to the ClusterIP. */
  readonly pod?: Verdict;
  /** From outside, to the NodePort, which masquerades. */
  readonly outside?: Verdict;
  /** Of a pod, to the endpoint's own address. @default not asked */
  readonly direct?: Verdict;
  readonly undo?: string;
}

const dropInA = (directions: string) => `-A FORWARD -p tcp -m set --match-set a ${directions} -j DROP`;

const FOREIGN: Readonly<Record<string, Foreign>> = {
  'a set that looks addresses up by a mask': {
    sets: ['create a hash:ip netmask 24', `add a ${client.ip()}`],
    rules: [dropInA('src')],
    pod: 'unknown',
    outside: 'unknown',
  },
  'a set with an exception': {
    sets: [
      'create a hash:ip,port,net',
      `add a ${web.ip()},tcp:${TARGET},10.244.0.0/16`,
      `add a ${web.ip()},tcp:${TARGET},${client.ip()} nomatch`,
    ],
    rules: [dropInA('dst,dst,src')],
    pod: 'works',
    outside: 'works',
  },
  'a set of networks': {
    sets: ['create a hash:net', 'add a 198.51.100.0/24', `add a ${outside.ip()}/25`],
    rules: [dropInA('src')],
    pod: 'works',
    outside: 'fails',
  },
  'a set of networks that has exceptions': {
    sets: ['create a hash:net', 'add a 10.244.0.0/16', `add a ${web.ip()} nomatch`],
    rules: [`-A FORWARD -p tcp --sport ${TARGET} -m set --match-set a src -j DROP`],
    pod: 'works',
    outside: 'works',
  },
  'a set of networks and ports': {
    sets: ['create a hash:net,port', `add a 10.244.0.0/16,tcp:${TARGET}`, 'add a 10.0.0.0/8,udp:8080'],
    rules: [dropInA('dst,dst')],
    pod: 'fails',
    outside: 'fails',
  },
  'such a set of ports of others': {
    sets: ['create a hash:net,port', `add a 10.244.0.0/16,udp:${TARGET}`, 'add a 10.0.0.0/8,tcp:80'],
    rules: [dropInA('dst,dst')],
    pod: 'works',
    outside: 'works',
  },
  'a set whose member has timed out': {
    sets: ['create a hash:ip timeout 600', `add a ${client.ip()} timeout 1`],
    rules: ['sleep 2', dropInA('src')],
    pod: 'works',
    outside: 'works',
  },
  'a set that a rule adds to in front of the one that asks': {
    sets: ['create a hash:ip'],
    rules: ['-A FORWARD -p tcp -j SET --add-set a src', dropInA('src')],
    pod: 'unknown',
    outside: 'unknown',
  },
  'a set that a rule adds to behind the one that asks': {
    sets: ['create a hash:ip'],
    rules: [dropInA('src'), '-A FORWARD -p tcp -j SET --add-set a src'],
    pod: 'unknown',
    outside: 'unknown',
  },
  'a set that a rule deletes from': {
    sets: ['create a hash:ip', `add a ${client.ip()}`],
    rules: ['-A FORWARD -p tcp -j SET --del-set a src', dropInA('src')],
    pod: 'unknown',
    outside: 'unknown',
  },
  'a set that gives some bits of the mark': {
    sets: ['create a hash:ip skbinfo', `add a ${client.ip()} skbmark 0x5/0xff`],
    rules: [
      '-t mangle -A PREROUTING -j MARK --set-mark 0x100',
      '-t mangle -A PREROUTING -j SET --map-set a src --map-mark',
      '-A FORWARD -m mark --mark 0x105 -j DROP',
    ],
    pod: 'fails',
    outside: 'works',
  },
  'answers of masqueraded connections are for this node, until they are translated back': {
    rules: ['-t raw -A PREROUTING -p tcp --sport 8080 -m addrtype ! --dst-type LOCAL -j DROP'],
    pod: 'fails',
    outside: 'works',
  },
  'and so somebody drops them': {
    rules: ['-t raw -A PREROUTING -p tcp --sport 8080 -m addrtype --dst-type LOCAL -j DROP'],
    pod: 'works',
    outside: 'fails',
  },
  'flows whose answers come to this node': {
    rules: ['-A FORWARD -p tcp -m conntrack --ctrepldst 10.244.1.1 -j DROP'],
    pod: 'works',
    outside: 'fails',
  },
  'flows that somebody answers': {
    rules: [`-A FORWARD -p tcp -m conntrack --ctreplsrc ${web.ip()} --ctreplsrcport ${TARGET} -j DROP`],
    pod: 'fails',
    outside: 'fails',
  },
  'one source port for all': {
    rules: ['-t nat -I POSTROUTING -p tcp -j SNAT --to-source :2000'],
    pod: 'unknown',
    outside: 'unknown',
  },
  'few source ports for all': {
    rules: ['-t nat -I POSTROUTING -p tcp -j MASQUERADE --to-ports 2000-2001'],
    pod: 'unknown',
    outside: 'unknown',
  },
  'rpfilter asks for the way back of a packet without a mark': {
    rules: [
      'ip rule add fwmark 5 lookup 77',
      `ip route add ${client.ip()} dev lo table 77`,
      `-t raw -A PREROUTING -s ${client.ip()} -j MARK --set-mark 5`,
      `-t raw -A PREROUTING -s ${client.ip()} -m rpfilter --invert -j DROP`,
      '-t mangle -A PREROUTING -j MARK --set-mark 0',
    ],
    undo: 'ip rule del fwmark 5; ip route flush table 77',
    pod: 'unknown',
    outside: 'works',
  },
  'what comes in by no interface at all': {
    rules: ['-A FORWARD ! -i + -j DROP', '-A FORWARD ! -o + -j DROP'],
    pod: 'works',
    outside: 'works',
  },
  'frames of a bridge have no input interface in the end, what is routed has': {
    rules: ['-t mangle -N BY_POD', '-t mangle -A BY_POD -i cni0 -p tcp -j DROP', '-t mangle -A POSTROUTING -j BY_POD'],
    undo: 'IPT -t mangle -X BY_POD',
    pod: 'unknown',
    direct: 'unknown',
    outside: 'fails',
  },
  'packets with data are dropped': {
    rules: [`-A FORWARD -p tcp -d ${web.ip()} --tcp-flags PSH PSH -j DROP`],
    pod: 'fails',
    direct: 'fails',
    outside: 'fails',
  },
  'answers with data are dropped': {
    rules: [`-A FORWARD -p tcp -s ${web.ip()} --tcp-flags PSH PSH -j DROP`],
    pod: 'fails',
    direct: 'fails',
    outside: 'fails',
  },
  'requests after the first are not tracked, and so are answers of no connection': {
    rules: [
      `-t raw -A PREROUTING -p tcp -s ${client.ip()} -d ${web.ip()} --tcp-flags SYN,ACK ACK -j CT --notrack`,
      '-A FORWARD -m conntrack --ctstate INVALID -j DROP',
    ],
    pod: 'works',
    direct: 'fails',
  },
  'the endpoint gets packets from itself': {
    rules: [`-t nat -I POSTROUTING -p tcp -s ${client.ip()} -j SNAT --to-source ${web.ip()}`],
    direct: 'fails',
  },
  'of the answers all but the first are dropped': {
    rules: [`-A FORWARD -p tcp -s ${web.ip()} --tcp-flags SYN,ACK ACK -j DROP`],
    pod: 'fails',
    direct: 'fails',
    outside: 'fails',
  },
  'what only acknowledges is dropped, which costs some time': {
    rules: [`-A FORWARD -p tcp -d ${web.ip()} --tcp-flags ALL ACK -j DROP`],
    pod: 'works',
    direct: 'works',
    outside: 'works',
  },
  'it is refused': {
    rules: [`-A FORWARD -p tcp -d ${web.ip()} --tcp-flags ALL ACK -j REJECT`],
    pod: 'unknown',
    direct: 'unknown',
    outside: 'unknown',
  },
  'so are answers that only acknowledge, and not all endpoints send those': {
    rules: [`-A FORWARD -p tcp -s ${web.ip()} --tcp-flags ALL ACK -j REJECT --reject-with tcp-reset`],
    pod: 'unknown',
    direct: 'unknown',
    outside: 'unknown',
  },
  'packets for one host': {
    rules: [`-A FORWARD -p tcp -d ${web.ip()} -m pkttype --pkt-type unicast -j DROP`],
    pod: 'fails',
    direct: 'fails',
    outside: 'fails',
  },
  'packets for all or for a group, and none else': {
    rules: [
      '-A FORWARD -m pkttype --pkt-type broadcast -j DROP',
      '-A FORWARD -m pkttype --pkt-type multicast -j DROP',
      '-t raw -A PREROUTING -p tcp -m pkttype ! --pkt-type unicast -j DROP',
    ],
    pod: 'works',
    direct: 'works',
    outside: 'works',
  },
  'copies, other classes of traffic, and hops enough': {
    rules: [
      '-t mangle -A PREROUTING -p tcp -j TEE --gateway 10.244.1.250',
      '-t mangle -A PREROUTING -p tcp -j DSCP --set-dscp 8',
      '-t mangle -A FORWARD -p tcp -j TOS --set-tos 0x10',
      '-t mangle -A PREROUTING -p tcp -j TTL --ttl-set 64',
    ],
    pod: 'works',
    direct: 'works',
    outside: 'works',
  },
  'other classes of traffic, which have routes of their own': {
    rules: ['ip rule add tos 0x10 blackhole', '-t mangle -A PREROUTING -p tcp -j TOS --set-tos 0x10'],
    undo: 'ip rule del tos 0x10 blackhole',
    pod: 'unknown',
    outside: 'unknown',
  },
  'nobody takes packets from a queue': {
    rules: [`-A FORWARD -p tcp -d ${web.ip()} -j NFQUEUE --queue-balance 7:9`],
    pod: 'fails',
    direct: 'fails',
    outside: 'fails',
  },
  'nobody does, and packets go on behind the table': {
    rules: [
      `-A FORWARD -p tcp -d ${web.ip()} -j NFQUEUE --queue-num 7 --queue-bypass`,
      `-A FORWARD -p tcp -d ${web.ip()} -j DROP`,
      `-t mangle -A POSTROUTING -p tcp -s ${outside.ip()} -j DROP`,
    ],
    pod: 'works',
    direct: 'works',
    outside: 'fails',
  },
  'too few hops': {
    rules: ['-t mangle -A PREROUTING -p tcp -j TTL --ttl-set 1'],
    pod: 'unknown',
    outside: 'unknown',
  },
  'answers are of no connection, where requests alone are not tracked': {
    rules: [
      `-t raw -A PREROUTING -p tcp -s ${client.ip()} -d ${web.ip()} -j CT --notrack`,
      '-A FORWARD -m conntrack --ctstate INVALID -j DROP',
    ],
    pod: 'works',
    direct: 'fails',
  },
  'so are requests after the first, where answers alone are not tracked': {
    rules: [
      `-t raw -A PREROUTING -p tcp -s ${web.ip()} -d ${client.ip()} --sport ${TARGET} -j CT --notrack`,
      '-A FORWARD -m conntrack --ctstate INVALID -j DROP',
    ],
    pod: 'fails',
    direct: 'fails',
  },
  'a chain has the name of one that other tables have built in': {
    rules: [
      '-t raw -N FORWARD',
      '-t raw -A FORWARD -p tcp -m conntrack --ctstate NEW -j DROP',
      '-t raw -A PREROUTING -j FORWARD',
    ],
    undo: 'IPT -t raw -X FORWARD',
    pod: 'works',
    direct: 'works',
  },
  'neither is tracked': {
    rules: [`-t raw -A PREROUTING -p tcp -j CT --notrack`, '-A FORWARD -m conntrack --ctstate INVALID -j DROP'],
    pod: 'fails',
    direct: 'works',
  },
};
/** Chains that jump to each other, deeper than nf_tables lets them. */
const DEEP = 20;

beforeAll(
  () =>
    world.begin(
      served('shop/web', VIP, [on(node, web.ip())], { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] }),
    ),
  300_000,
);
afterAll(async () => {
  await world.end();
  removeAll();
});

async function really(from: Host, ip: string, port: number): Promise<Verdict> {
  const options = { timeoutMs: 800, concurrency: TRIES };
  const outcomes = await from.connectMany({ ip, port, protocol: 'TCP' }, TRIES, options);
  const good = outcomes.filter(({ kind }) => kind === 'answered').length;
  return good === 0 ? 'fails' : good < TRIES ? 'partly' : 'works';
}

async function ask(from: Host, ip: string, port: number): Promise<Answer> {
  const [answer] = await world.askHere([{ destination: `${ip}:${port}`, source: from.ip() }]);
  return answer!;
}

function run(line: string): void {
  world.run('sh', '-c', line);
}

describe.each(['iptables-legacy', 'iptables-nft'])('%s', (program) => {
  it.each(Object.entries(FOREIGN))('%s', async (_, { sets = [], rules, undo, ...wanted }) => {
    faults.undo(() => {
      for (const table of ['raw', 'mangle', 'nat', 'filter']) run(`${program} -t ${table} -F`);
      run(`ipset destroy; conntrack -F 2>/dev/null; ${(undo ?? 'true').replaceAll('IPT', program)}`);
    });
    for (const line of sets) run(`ipset ${line}`);
    for (const line of rules) run(line.startsWith('-') ? `${program} ${line}` : line);
    for (const [from, ip, port, verdict] of [
      [client, VIP, 80, wanted.pod],
      [outside, node.ip(), NODE_PORT, wanted.outside],
      [client, web.ip(), TARGET, wanted.direct],
    ] as const) {
      if (verdict === undefined) continue;
      const answer = await ask(from, ip, port);
      expect(answer.verdict, `${from.name}: ${answer.cause}`).toBe(verdict);
      if (answer.verdict !== 'unknown') expect(await really(from, ip, port), from.name).toBe(answer.verdict);
    }
  });
});

it('which of two that translate comes first is not known', async () => {
  faults.undo(() => run('iptables-legacy -t nat -F'));
  run(`iptables-legacy -t nat -I PREROUTING -p tcp -d ${VIP} -j REDIRECT --to-ports 9090`);
  const answer = await ask(client, VIP, 80);
  expect(answer.verdict, answer.cause).toBe('unknown');
});

it('the match that decides is named, not which of two comes first where that changes nothing', async () => {
  faults.undo(() => run('iptables-legacy -F'));
  run('iptables-legacy -t nat -L; iptables-legacy -I FORWARD -m length --length 9000 -j DROP');
  const { cause } = await ask(client, VIP, 80);
  expect(cause).toContain('decides by -m length');
});

it('who takes packets from a queue may do anything', async () => {
  const queue = openPacketQueue(node.namespace.path, 7);
  faults.undo(() => {
    run('iptables-legacy -F');
    queue.close();
  });
  run(`iptables-legacy -A FORWARD -p tcp -d ${web.ip()} -j NFQUEUE --queue-num 7`);
  expect(await ask(client, VIP, 80)).toMatchObject({ verdict: 'unknown' });
  run('iptables-legacy -F');
  run(`iptables-legacy -A FORWARD -p tcp -d ${web.ip()} -j NFQUEUE --queue-num 8`);
  expect(await ask(client, VIP, 80)).toMatchObject({ verdict: 'fails', code: 'foreign-drop' });
});

it('chains as deep as legacy iptables goes', async () => {
  const chains = Array.from({ length: DEEP }, (_, index) => `DEEP-${index}`);
  const rule = (text: string) => run(`iptables-legacy ${text}`);
  faults.undo(() => {
    rule('-F');
    for (const name of chains) rule(`-X ${name}`);
  });
  for (const name of chains) rule(`-N ${name}`);
  for (const [index, name] of chains.entries()) rule(`-A ${name} -j ${chains[index + 1] ?? 'RETURN'}`);
  rule(`-A FORWARD -j ${chains[0]}`);
  const answer = await ask(client, VIP, 80);
  expect(answer.verdict, answer.cause).toBe('works');
  expect(await really(client, VIP, 80)).toBe('works');
});
