import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { Faults } from './faults.ts';

// Marks that rules keep in connection tracking from a connection's first packet to all others (CONNMARK, `ct mark`), as network plugins and
// meshes leave such rules on nodes. What is told is what connections do.

useOwnLockFile();
const [VIP, NODE_PORT, LOCAL_PORT] = ['10.96.0.10', 30_080, 30_081];
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

interface Marks {
  /** `ip …`, or a rule of iptables. */
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
    bad: { 'outside to NodePort, Local': 'fails' },
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
      '-A FORWARD -m connmark --mark 0x5 -m conntrack --ctstate ESTABLISHED -j DROP',
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
  },
  'untracked by chance': {
    rules: ['-t raw -A PREROUTING -p tcp --dport 8080 -m statistic --mode random --probability 0.5 -j NOTRACK'],
    unknown: ['pod to pod'],
  },
  'links that policy rules lead to': {
    rules: [
      'ip link add up1 type veth peer name up2',
      'ip link set up1 up',
      'ip link set up2 up',
      'ip route add default dev up1 table 78',
      'ip rule add iif cni0 lookup 78 prio 98',
      '-A FORWARD -o eth0 -j DROP',
    ],
    bad: { 'outside to NodePort, Local': 'fails' },
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

/** Undone in the end. */
function begin(rule: string, program: string): void {
  if (!rule.startsWith('ip ')) {
    world.run(program, ...rule.split(' '));
    const table = /^-t (\S+)/.exec(rule)?.[1] ?? 'filter';
    const undo = rule.replace(/ -A /, ' -D ').replace(/^-A/, '-D');
    if (/-N /.test(rule)) {
      const chain = rule.split(' ').at(-1)!;
      faults.undo(() => world.run(program, '-t', table, '-X', chain));
    } else faults.undo(() => world.run(program, ...undo.split(' ')));
    return;
  }
  if (rule.startsWith('ip link set')) {
    world.run('ip', ...rule.split(' ').slice(1));
    return;
  }
  const undo = rule.startsWith('ip link add')
    ? 'link del up1'
    : rule.startsWith('ip rule')
      ? `rule del prio ${rule.split(' ').at(-1)}`
      : `route flush table ${rule.split(' ').at(-1)}`;
  faults.ip(rule.slice(3), undo);
}
