import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Rules as others write them, which nobody here evaluates or which are easily taken for something else: no verdict may be one that a
// real connection contradicts.

const VIP = '10.96.0.10';
const NODE_PORT = 30_080;
const TO_TARGET = `tcp dport ${TARGET}`;

interface Foreign {
  /** What is in the table `inet foreign`, a line each. */
  readonly lines: readonly string[];
  /** @default the pod */
  readonly from?: 'outside' | 'node';
  readonly verdict: 'works' | 'fails' | 'unknown';
  /** Whether connections are answered. */
  readonly answered: boolean;
}

const chain = (hook: string, rules: readonly string[], policy = 'accept'): string[] => [
  `chain ${hook.split(' ')[2]} {`,
  `type ${hook}; policy ${policy};`,
  ...rules,
  '}',
];
const forward = (...rules: string[]) => chain('filter hook forward priority 0', rules);
const raw = (...rules: string[]) => chain('filter hook prerouting priority -300', rules);
const SET = ['set clients {', 'type ipv4_addr', 'flags dynamic', '}'];

const FOREIGN: Readonly<Record<string, Foreign>> = {
  'a table that is asleep': {
    lines: ['flags dormant', ...forward(`${TO_TARGET} drop`)],
    verdict: 'works',
    answered: true,
  },
  'a connection limit for each client': {
    lines: [...SET, ...forward(`${TO_TARGET} add @clients { ip saddr ct count over 1000 } drop`)],
    verdict: 'unknown',
    answered: true,
  },
  'a quota for each client': {
    lines: [...SET, ...forward(`${TO_TARGET} add @clients { ip saddr quota over 100 mbytes } drop`)],
    verdict: 'unknown',
    answered: true,
  },
  'the segment size of connections is set': {
    lines: forward('tcp flags syn tcp option maxseg size set rt mtu'),
    verdict: 'works',
    answered: true,
  },
  'what is dropped is logged in full': {
    lines: forward(`${TO_TARGET} log flags all drop`),
    verdict: 'fails',
    answered: false,
  },
  'a zone, set before connection tracking': {
    lines: raw('ct zone set 5'),
    verdict: 'unknown',
    answered: true,
  },
  'each third packet is refused, whichever connection it is of': {
    lines: forward(`${TO_TARGET} numgen inc mod 3 == 2 reject with tcp reset`),
    from: 'outside',
    verdict: 'unknown',
    answered: false,
  },
  'each second first packet is dropped': {
    lines: forward(`ct state new ${TO_TARGET} numgen inc mod 2 == 0 drop`),
    verdict: 'unknown',
    answered: true,
  },
  'first packets alone pass': {
    lines: chain('filter hook forward priority 0', ['ct state new accept', 'ct direction reply accept'], 'drop'),
    verdict: 'fails',
    answered: false,
  },
  'packets with ACK alone are dropped': {
    lines: forward(`${TO_TARGET} tcp flags & (syn | ack) == ack drop`),
    verdict: 'fails',
    answered: false,
  },
  'the endpoint may begin no connection': {
    lines: forward('ip saddr 10.244.1.0/24 tcp dport != 8080 tcp flags & (fin | syn | rst | ack) == syn drop'),
    verdict: 'works',
    answered: true,
  },
  'what IPsec has unwrapped, or is to wrap': {
    lines: forward('meta ipsec exists drop', 'rt ipsec exists drop', 'ipsec in ip saddr 192.0.2.1 drop'),
    verdict: 'works',
    answered: true,
  },
  'what IPsec has not unwrapped': {
    lines: forward(`${TO_TARGET} meta ipsec missing drop`),
    verdict: 'fails',
    answered: false,
  },
  'fragments, and options of IP': {
    lines: raw('ip frag-off & 0x1fff != 0 drop', 'ip option lsrr exists drop', 'frag frag-off 64 drop'),
    verdict: 'works',
    answered: true,
  },
  'all that are whole': {
    lines: forward(`${TO_TARGET} ip frag-off & 0x3fff == 0 drop`),
    verdict: 'fails',
    answered: false,
  },
  'what may not become fragments': {
    lines: forward(`${TO_TARGET} ip frag-off & 0x4000 == 0 drop`),
    verdict: 'unknown',
    answered: true,
  },
  'what is translated passes, and nothing else': {
    lines: chain('filter hook forward priority 0', ['ct status dnat accept'], 'drop'),
    verdict: 'works',
    answered: true,
  },
  'nobody has a way to this node itself': {
    lines: raw('tcp dport 30080 fib daddr oif exists drop'),
    from: 'outside',
    verdict: 'works',
    answered: true,
  },
  'so that what is for it is dropped': {
    lines: raw('tcp dport 30080 fib daddr oif missing drop'),
    from: 'outside',
    verdict: 'fails',
    answered: false,
  },
  'and so are answers': {
    lines: raw('tcp sport 8080 fib daddr oif missing drop'),
    from: 'node',
    verdict: 'fails',
    answered: false,
  },
  'behind which a socket may know the way': {
    lines: chain('filter hook input priority 0', ['tcp sport 8080 fib daddr oif missing drop']),
    from: 'node',
    verdict: 'unknown',
    answered: false,
  },
  'the input interface of frames of a bridge': {
    lines: chain('filter hook postrouting priority 110', [`iifname cni0 ${TO_TARGET} drop`]),
    verdict: 'unknown',
    answered: true,
  },
  'answers are not tracked': {
    lines: raw('ip saddr 10.244.1.3 tcp dport != 80 notrack'),
    verdict: 'fails',
    answered: false,
  },
};

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;

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

it.each(Object.entries(FOREIGN))('%s', async (_, { lines, from, verdict, answered }) => {
  world.run('nft', ['table inet foreign {', ...lines, '}'].join('\n'));
  faults.undo(() => world.run('nft', 'delete table inet foreign'));
  const host = from === undefined ? client : world[from];
  const [ip, port] = host === outside ? [node.ip(), NODE_PORT] : [VIP, 80];
  const source = from === 'node' ? 'node' : host.ip();
  const [answer] = await world.askHere([{ destination: `${ip}:${port}`, source }]);
  expect({ verdict: answer!.verdict, answered: await answers(host, ip, port) }, answer!.cause).toEqual({
    verdict,
    answered,
  });
});

it('a chain of ARP, but one that does nothing', async () => {
  const chain = 'chain input {\ntype filter hook input priority 0; policy accept;';
  const verdict = async () => (await world.askHere([{ destination: `${VIP}:80`, source: client.ip() }]))[0]!.verdict;
  faults.undo(() => world.run('nft', 'delete table arp foreign'));
  world.run('nft', `table arp foreign {\n${chain}\n}\n}`);
  expect(await verdict()).toBe('works');
  world.run('nft', 'add rule arp foreign input drop');
  expect(await verdict()).toBe('unknown');
});

describe('legacy arptables', () => {
  const ask = async (source: string = client.ip()) => {
    const [answer] = await world.askHere([{ destination: `${VIP}:80`, source }]);
    return answer!;
  };
  const arptables = (...rules: string[]) => {
    for (const rule of rules) world.run('arptables-legacy', ...rule.split(' '));
    faults.undo(() => {
      world.run('arptables-legacy', '-F');
      for (const chain of ['INPUT', 'OUTPUT', 'FORWARD']) world.run('arptables-legacy', '-P', chain, 'ACCEPT');
    });
  };
  const isAnswered = async () => {
    for (const { namespace } of [node, world.web, client]) namespace.run('ip', 'neigh', 'flush', 'all');
    world.run('conntrack', '-F');
    return answers(client, VIP, 80);
  };

  it.each<[string, readonly string[]]>([
    ['INPUT', ['-A INPUT -i cni+ -j DROP']],
    ['INPUT', ['-A INPUT -i lo -j DROP', '-A INPUT ! -i eth0 -j DROP']],
    ['OUTPUT', ['-A OUTPUT -o cni0 -j mangle --mangle-ip-s 10.244.1.250']],
    ['OUTPUT', ['-P OUTPUT DROP']],
    ['FORWARD', ['-A FORWARD -j DROP']],
  ])('chain %s that stops it makes UNKNOWN: %j', async (chain, rules) => {
    expect(await isAnswered()).toBe(true);
    arptables(...rules);
    const { verdict, cause } = await ask();
    expect({ verdict, cause }).toEqual({
      verdict: 'unknown',
      cause: expect.stringContaining(`arptables (legacy), chain ${chain}`),
    });
    expect(await isAnswered()).toBe(false);
  });

  it.each<[string, readonly string[]]>([
    ['let all pass', ['-A INPUT -j ACCEPT', '-N other', '-A OUTPUT -j RETURN']],
    ['are for other links', ['-A INPUT -i eth9 -j DROP', '-A OUTPUT -o eth+9 -j DROP', '-A FORWARD -i eth9 -j DROP']],
  ])('rules that %s change nothing', async (_, rules) => {
    arptables(...rules);
    expect(await ask()).toMatchObject({ verdict: 'works' });
    expect(await isAnswered()).toBe(true);
  });

  it('of a pod make UNKNOWN too, and asking makes no table', async () => {
    const tables = (host: Host) => host.namespace.run('cat', '/proc/net/arp_tables_names');
    expect(await ask()).toMatchObject({ verdict: 'works' });
    expect(tables(world.web)).toBe('');
    client.namespace.run('arptables-legacy', '-A', 'OUTPUT', '-j', 'DROP');
    faults.undo(() => void client.namespace.run('arptables-legacy', '-F'));
    expect(await isAnswered()).toBe(false);
    expect(await ask()).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('arptables') });
  });
});
