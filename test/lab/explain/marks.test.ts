import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Marks that rules keep in connection tracking from a connection's first packet to all others (CONNMARK, `ct mark`), as
// network plugins and meshes leave such rules on nodes. What is told is what connections do.

useOwnLockFile();
const [VIP, NODE_PORT, LOCAL_PORT, HOST_PORT] = ['10.96.0.10', 30_080, 30_081, 9000];
/** All alike where chance has no part. */
const TRIES = 12;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;
const [WEB, NODE] = [web.ip(), node.ip()];

const WAYS = {
  'pod to Service': [client, VIP, 80],
  'pod to pod': [client, WEB, TARGET],
  'node to Service': [node, VIP, 80],
  'node to pod': [node, WEB, TARGET],
  'outside to NodePort': [outside, NODE, NODE_PORT],
  'outside to NodePort, Local': [outside, NODE, LOCAL_PORT],
} as const satisfies Readonly<Record<string, readonly [Host, string, number]>>;
type Way = keyof typeof WAYS;

const OUTSIDE: readonly Way[] = ['outside to NodePort', 'outside to NodePort, Local'];

interface Marks {
  /** `ip …`, `nft …` for a rule of hook prerouting in front of routing, or a rule of iptables. */
  readonly rules: readonly string[];
  /** What is told is `unknown`, although connections do something: nobody can tell. @default none */
  readonly unknown?: readonly Way[];
  /** Those that do not work, all or some. @default all work */
  readonly bad?: Partial<Readonly<Record<Way, 'fails' | 'partly'>>>;
}

/** Packets that leave by another uplink than the one they came by: where nobody is. */
const SECOND_UPLINK = [
  'ip route add default via 192.168.50.77 table 77',
  `ip rule add from ${WEB} lookup 77 prio 1536`,
];

const IPTABLES: Readonly<Record<string, Marks>> = {
  // amazon-vpc-cni-k8s, pkg/networkutils/network.go: answers of pods of a second interface leave by the first one, if they came by it.
  'AWS VPC CNI': {
    rules: [
      ...SECOND_UPLINK,
      'ip rule add fwmark 0x80/0x80 lookup main prio 1024',
      'ip rule add to 10.244.0.0/16 lookup main prio 512',
      '-t mangle -A PREROUTING -i eth0 -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-xmark 0x80/0x80',
      '-t mangle -A PREROUTING -i cni0 -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80',
      '-t nat -N AWS-SNAT-CHAIN-0',
      '-t nat -N AWS-CONNMARK-CHAIN-0',
      '-t nat -A PREROUTING -i cni0 -j AWS-CONNMARK-CHAIN-0',
      '-t nat -A PREROUTING -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80',
      '-t nat -A POSTROUTING -j AWS-SNAT-CHAIN-0',
      '-t nat -A AWS-CONNMARK-CHAIN-0 -d 192.168.0.0/16 -j RETURN',
      '-t nat -A AWS-CONNMARK-CHAIN-0 -j CONNMARK --set-xmark 0x80/0x80',
      '-t nat -A AWS-SNAT-CHAIN-0 -d 192.168.0.0/16 -j RETURN',
      '-t nat -A AWS-SNAT-CHAIN-0 -d 10.244.0.0/16 -j RETURN',
      `-t nat -A AWS-SNAT-CHAIN-0 ! -o vlan+ -m addrtype ! --dst-type LOCAL -j SNAT --to-source ${NODE} --random-fully`,
    ],
  },
  'AWS VPC CNI, without the rule that restores the mark': {
    rules: [
      ...SECOND_UPLINK,
      'ip rule add fwmark 0x80/0x80 lookup main prio 1024',
      'ip rule add to 10.244.0.0/16 lookup main prio 512',
      '-t mangle -A PREROUTING -i eth0 -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-xmark 0x80/0x80',
    ],
    unknown: OUTSIDE,
    bad: { 'outside to NodePort': 'fails', 'outside to NodePort, Local': 'fails' },
  },
  // istio, tools/istio-iptables of ambient 1.18: what came through the tunnel goes back through it.
  'Istio ambient': {
    rules: [
      '-t mangle -N ztunnel-PREROUTING',
      '-t mangle -N ztunnel-FORWARD',
      '-t mangle -N ztunnel-INPUT',
      '-t mangle -N ztunnel-OUTPUT',
      '-t mangle -A PREROUTING -j ztunnel-PREROUTING',
      '-t mangle -A FORWARD -j ztunnel-FORWARD',
      '-t mangle -A INPUT -j ztunnel-INPUT',
      '-t mangle -A OUTPUT -j ztunnel-OUTPUT',
      '-t mangle -A ztunnel-PREROUTING -i istioin -j MARK --set-xmark 0x200/0x200',
      '-t mangle -A ztunnel-PREROUTING -i istioin -j RETURN',
      '-t mangle -A ztunnel-PREROUTING -m connmark --mark 0x220/0x220 -j MARK --set-xmark 0x200/0x200',
      '-t mangle -A ztunnel-PREROUTING -m mark --mark 0x200/0x200 -j RETURN',
      '-t mangle -A ztunnel-PREROUTING -m connmark --mark 0x210/0x210 -j MARK --set-xmark 0x40/0x40',
      '-t mangle -A ztunnel-PREROUTING -m mark --mark 0x40/0x40 -j RETURN',
      '-t mangle -A ztunnel-FORWARD -m mark --mark 0x220/0x220 -j CONNMARK --save-mark --nfmask 0x220 --ctmask 0x220',
      '-t mangle -A ztunnel-FORWARD -m mark --mark 0x210/0x210 -j CONNMARK --save-mark --nfmask 0x210 --ctmask 0x210',
      '-t mangle -A ztunnel-INPUT -m mark --mark 0x220/0x220 -j CONNMARK --save-mark --nfmask 0x220 --ctmask 0x220',
      `-t mangle -A ztunnel-OUTPUT -s ${NODE} -j MARK --set-xmark 0x220/0xffffffff`,
      'ip rule add fwmark 0x200/0x200 goto 32766 prio 20000',
      'ip rule add fwmark 0x100/0x100 lookup 101 prio 20001',
      'ip rule add fwmark 0x40/0x40 lookup 102 prio 20002',
    ],
  },
  // The whole mark, which KUBE-MARK-MASQ and KUBE-FORWARD use bits of.
  'a mark that is kept for all packets': {
    rules: [
      '-t mangle -A PREROUTING -j CONNMARK --restore-mark',
      '-t mangle -A OUTPUT -j CONNMARK --restore-mark',
      '-t mangle -A PREROUTING -m mark --mark 0 -j MARK --set-mark 0x5',
      '-t mangle -A POSTROUTING -j CONNMARK --save-mark',
    ],
  },
  'a mark of first packets that drops others': {
    rules: [
      '-t mangle -A FORWARD -m conntrack --ctstate NEW -j CONNMARK --set-mark 0x5',
      '-t mangle -A POSTROUTING -m connmark --mark 0x5 -m conntrack --ctstate ESTABLISHED -j DROP',
    ],
    bad: {
      'pod to Service': 'fails',
      'pod to pod': 'fails',
      'outside to NodePort': 'fails',
      'outside to NodePort, Local': 'fails',
    },
  },
  'a mark of answers that drops what comes after': {
    rules: [
      '-t mangle -A PREROUTING -m conntrack --ctdir REPLY -j CONNMARK --set-mark 0x5',
      '-t mangle -A PREROUTING -p tcp --dport 80 -m connmark --mark 0x5 -j DROP',
    ],
    bad: { 'pod to Service': 'fails' },
  },
  'a mark of later packets that drops later answers': {
    rules: [
      `-t mangle -A PREROUTING -p tcp -m tcp --tcp-flags SYN,ACK ACK --dport 80 -j CONNMARK --set-mark 0x5`,
      '-t mangle -A PREROUTING -p tcp -m conntrack --ctdir REPLY -m connmark --mark 0x5 -j DROP',
    ],
    bad: { 'pod to Service': 'fails' },
  },
  'a mark that the second of later packets finds': {
    rules: [
      `-t mangle -A PREROUTING -p tcp -m tcp --tcp-flags SYN,ACK ACK --dport 80 -m connmark --mark 0x6 -j DROP`,
      `-t mangle -A PREROUTING -p tcp -m tcp --tcp-flags SYN,ACK ACK --dport 80 -j CONNMARK --set-mark 0x6`,
    ],
    bad: { 'pod to Service': 'fails' },
  },
  'a mark that sends answers nowhere': {
    rules: [
      'ip rule add fwmark 0x6 blackhole prio 99',
      `-t mangle -A PREROUTING -p tcp --dport ${LOCAL_PORT} -j CONNMARK --set-mark 0x6`,
      '-t mangle -A PREROUTING -i cni0 -j CONNMARK --restore-mark',
    ],
    bad: { 'outside to NodePort, Local': 'fails' },
  },
  'a mark that chance gives': {
    rules: [
      '-t mangle -A PREROUTING -p tcp --syn --dport 80 -m statistic --mode random --probability 0.5 -j CONNMARK --set-mark 0x5',
      '-t mangle -A PREROUTING -p tcp -m conntrack --ctdir REPLY -m connmark --mark 0x5 -j DROP',
    ],
    bad: { 'pod to Service': 'partly' },
  },
  'a mark that a limit gives': {
    rules: [
      '-t mangle -A PREROUTING -p tcp --syn --dport 80 -m limit --limit 1/hour --limit-burst 1 -j CONNMARK --set-mark 0x5',
      '-t mangle -A PREROUTING -p tcp -m conntrack --ctdir REPLY -m connmark --mark 0x5 -j DROP',
    ],
    unknown: ['pod to Service'],
    bad: { 'pod to Service': 'partly' },
  },
  'untracked by chance': {
    rules: [
      '-t raw -A PREROUTING -p tcp --syn --dport 8080 -m statistic --mode random --probability 0.5 -j NOTRACK',
      '-t mangle -A FORWARD -m conntrack --ctstate INVALID -j DROP',
    ],
    bad: { 'pod to pod': 'partly' },
  },
  'untracked by a limit': {
    rules: [
      '-t raw -A PREROUTING -p tcp --syn --dport 8080 -m limit --limit 1/hour --limit-burst 1 -j NOTRACK',
      '-t mangle -A FORWARD -m conntrack --ctstate INVALID -j DROP',
    ],
    unknown: ['pod to pod'],
    bad: { 'pod to pod': 'partly' },
  },
  'a mark of answers that another uplink is for': {
    rules: [
      'ip route add default via 192.168.50.77 table 77',
      'ip rule add to 10.244.0.0/16 lookup main prio 512',
      'ip rule add fwmark 0x5 lookup 77 prio 1024',
      '-t mangle -A PREROUTING -i cni0 -j MARK --set-mark 0x5',
    ],
    unknown: OUTSIDE,
    bad: { 'outside to NodePort': 'fails', 'outside to NodePort, Local': 'fails' },
  },
  // The other link is a way to the same client, that nobody here knows of.
  'a link that policy rules lead answers to, beside the one that rules drop on': {
    rules: [
      'ip link add up1 type veth peer name up2',
      'ip link set up1 up',
      `ip link set up2 netns ${outside.namespace.name} up`,
      `ip route add ${outside.ip()} dev up1 table 78`,
      `ip rule add iif cni0 to ${outside.ip()} lookup 78 prio 98`,
      '-t mangle -A FORWARD -o eth0 -j DROP',
    ],
    unknown: OUTSIDE,
  },
  // The mark of a first packet that is masqueraded has one bit more.
  'a mark of later packets that no policy rule lets in': {
    rules: [
      'ip rule add fwmark 0x7 iif eth0 prohibit prio 99',
      '-t mangle -A PREROUTING -i eth0 -j MARK --set-mark 0x7',
    ],
    bad: { 'outside to NodePort': 'fails', 'outside to NodePort, Local': 'fails' },
  },
  'a mark by which rp_filter sees no way back for what follows the first packet': {
    rules: [
      'sysctl net.ipv4.conf.all.rp_filter=1',
      'sysctl net.ipv4.conf.all.src_valid_mark=1',
      'ip route add 10.244.1.0/24 dev cni0 table 79',
      'ip route add unreachable default table 79',
      'ip rule add fwmark 0x7 lookup 79 prio 99',
      '-t mangle -A PREROUTING -i eth0 -j MARK --set-mark 0x7',
    ],
    bad: { 'outside to NodePort': 'fails', 'outside to NodePort, Local': 'fails' },
  },
  'ct mark of nftables that sends answers nowhere': {
    rules: [
      'ip rule add fwmark 0x6 blackhole prio 99',
      `nft ct state new tcp dport ${LOCAL_PORT} ct mark set 0x106`,
      'nft iifname cni0 meta mark set ct mark and 0xff',
    ],
    bad: { 'outside to NodePort, Local': 'fails' },
  },
  'ct mark of nftables that keeps answers on their way': {
    rules: [
      'ip rule add fwmark 0x6 lookup main prio 99',
      `ip rule add from ${WEB} blackhole prio 100`,
      'nft iifname eth0 meta mark set 0x6',
      'nft ct state new ct mark set meta mark and 0xf',
      'nft iifname cni0 meta mark set ct mark',
    ],
  },
};

const VARIANTS = { nftables: [], legacy: ['--iptables-variant', 'legacy'], nft: ['--iptables-variant', 'nft'] };

beforeAll(async () => {
  const nodePort = (number: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort: number }] }) as const;
  await world.prepare([
    ...served('shop/web', VIP, [on(node, WEB)], nodePort(NODE_PORT)),
    ...served('shop/local', '10.96.0.11', [on(node, WEB)], { ...nodePort(LOCAL_PORT), externalTrafficPolicy: 'Local' }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

describe.each(Object.entries(VARIANTS))('agent in %s', (variant, flags) => {
  const program = variant === 'nft' ? 'iptables-nft' : 'iptables-legacy';
  beforeAll(async () => {
    const mode = variant === 'nftables' ? 'nftables' : 'iptables';
    await world.startAgent('--proxy-mode', mode, ...flags, '--iptables-min-sync-period', '20s');
    await world.settle();
  }, 300_000);
  afterAll(async () => {
    await world.end();
    await world.command('cleanup');
  });

  it.each(Object.entries(IPTABLES))('%s', async (_, { rules, unknown = [], bad = {} }) => {
    for (const rule of rules) begin(rule, program);
    const found: string[] = [];
    for (const [way, [from, ip, port]] of Object.entries(WAYS) as [Way, (typeof WAYS)[Way]][]) {
      world.run('conntrack', '-F');
      const source = from === node ? 'node' : from.ip();
      const [answer] = await world.askHere([{ destination: `${ip}:${port}`, source }]);
      const options = { timeoutMs: 700, concurrency: TRIES };
      const outcomes = await from.connectMany({ ip, port, protocol: 'TCP' }, TRIES, options);
      const good = outcomes.filter(({ kind }) => kind === 'answered').length;
      const really = good === TRIES ? 'works' : good === 0 ? 'fails' : 'partly';
      const said = unknown.includes(way) ? 'unknown' : really;
      if (answer!.verdict !== said) found.push(`${way} ${really}: ${answer!.verdict}, ${answer!.cause}`);
      if (really !== (bad[way] ?? 'works')) found.push(`${way} is ${really}`);
    }
    expect(found).toEqual([]);
  });
});

describe('a process of the node, whose answers have the marks of what it is asked', () => {
  beforeAll(async () => {
    await node.serve({ port: HOST_PORT });
    await world.startAgent();
  }, 300_000);
  afterAll(() => world.end());

  it.each<[string, string, string]>([
    ['before it is routed', 'prerouting', 'ip rule add iif lo fwmark 0x7 prohibit prio 99'],
    ['before it gets there', 'input', 'ip rule add iif lo fwmark 0x7 prohibit prio 99'],
    ['before rules drop them', 'prerouting', '-t mangle -A OUTPUT -m mark --mark 0x7 -j DROP'],
  ])('%s', async (_, hook, rule) => {
    faults.nft(
      `table inet marks { chain seen { type filter hook ${hook} priority -150; meta mark set 0x7; } }`,
      'inet marks',
    );
    begin(rule, 'iptables-nft');
    for (const [setting, verdict] of [
      ['0', 'works'],
      ['1', 'fails'],
    ] as const) {
      faults.sysctl('net.ipv4.tcp_fwmark_accept', setting);
      world.run('conntrack', '-F');
      const answer = await world.ask(`node:${HOST_PORT}`, outside.ip());
      expect(answer, answer.cause).toMatchObject({ verdict });
      expect(await answers(outside, NODE, HOST_PORT)).toBe(verdict === 'works');
    }
  });
});

/** Undone in the end. */
function begin(rule: string, program: string): void {
  const [first, ...words] = rule.split(' ');
  const last = words.at(-1)!;
  if (first === 'nft') {
    const chain = `table inet marks {\nchain seen {\ntype filter hook prerouting priority -150\n${words.join(' ')}\n}\n}`;
    world.run('nft', chain);
    faults.undo(() => void world.run('nft', 'add table inet marks; delete table inet marks'));
  } else if (first === 'sysctl') {
    faults.sysctl(...(last.split('=') as [string, string]));
  } else if (first !== 'ip') {
    world.run(program, ...rule.split(' '));
    const undo = rule.replace('-A ', '-D ').replace('-N ', '-X ');
    faults.undo(() => world.run(program, ...undo.split(' ')));
  } else if (words[1] === 'set') world.run('ip', ...words);
  else faults.ip(words.join(' '), UNDO[words[0]!]!(last));
}

const UNDO: Readonly<Record<string, (last: string) => string>> = {
  link: () => 'link del up1',
  rule: (priority) => `rule del prio ${priority}`,
  route: (table) => `route flush table ${table}`,
};
