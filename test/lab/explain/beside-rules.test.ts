import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, removeAll } from '../lab.ts';
import { startProgram } from './bpf-program.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults, vethOf } from './faults.ts';

// What is not of netfilter and stops packets: programs of BPF, queues of tc, IPsec, the MTU of a pair; and a client without ports.

const VIP = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;
const [toWeb, toClient] = [vethOf(node, web), vethOf(node, client)];

beforeAll(() => world.begin(served('shop/web', VIP, [on(node, web.ip())])), 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** What drops there. */
const PROGRAMS = {
  xdp: { type: 6, returns: 1, attach: 37 },
  'tcx ingress': { type: 3, returns: 2, attach: 46 },
  'tcx egress': { type: 3, returns: 2, attach: 47 },
} as const;

async function dropBy(program: keyof typeof PROGRAMS, link: string, host: Host): Promise<void> {
  const index = JSON.parse(host.namespace.run('ip', '-j', 'link', 'show', link))[0].ifindex as number;
  await startProgram(faults, PROGRAMS[program], `${index}`, ['ip', 'netns', 'exec', host.namespace.name]);
}

const queue = (link: string, words: string, host: Host = node) =>
  faults.run('tc', `qdisc add dev ${link} root ${words}`, `qdisc del dev ${link} root`, host);
/** With a class of its own for all packets. */
const classed = (rate: string) => {
  queue(toWeb, 'handle 1: htb default 1');
  node.namespace.run('tc', ...`class add dev ${toWeb} parent 1: classid 1:1 htb rate ${rate}`.split(' '));
};
const filterAtQueue = (does: string) => {
  classed('100mbit');
  const filter = `filter add dev ${toWeb} parent 1: protocol all prio 1 u32 match u32 0 0 ${does}`;
  node.namespace.run('tc', ...filter.split(' '));
};
const ipsec = (words: string, host: Host) =>
  faults.ip(`xfrm policy add ${words} action block`, `xfrm policy del ${words}`, host);
const ipsecDefault = (direction: string, host: Host) =>
  faults.ip(`xfrm policy setdefault ${direction} block`, `xfrm policy setdefault ${direction} accept`, host);
const letPass = (words: string) => faults.ip(`xfrm policy add ${words}`, `xfrm policy del ${words}`);

/** By a device whose queue takes what the pair receives; a filter of u32 is listed with the table that holds it. */
function limitSent(): void {
  faults.ip('link add limit0 up type ifb', 'link del limit0');
  node.namespace.run('tc', ...'qdisc add dev limit0 root tbf rate 100mbit burst 100kb limit 1mb'.split(' '));
  faults.run('tc', `qdisc add dev ${toClient} ingress`, `qdisc del dev ${toClient} ingress`);
  const filter = 'protocol all prio 1 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev limit0';
  node.namespace.run('tc', ...`filter add dev ${toClient} parent ffff: ${filter}`.split(' '));
}

/** Its socket passes all policies by two of its own: IP_XFRM_POLICY with a struct xfrm_userpolicy_info for each direction. */
async function listenAsIke(): Promise<void> {
  const script = `use Socket; socket(my $s, AF_INET, SOCK_DGRAM, 0); bind($s, sockaddr_in(500, INADDR_ANY)) or die;
    for (0, 1) { my $policy = "\\0" x 168; substr($policy, 40, 2) = pack('S', AF_INET); substr($policy, 160, 1) = chr($_);
      setsockopt($s, 0, 17, $policy) or die "$!"; } $| = 1; print "there\\n"; sleep;`;
  const child = spawn('ip', ['netns', 'exec', node.namespace.name, 'perl', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  faults.undo(() => void child.kill());
  await once(child.stdout, 'data');
  expect(node.namespace.run('ip', 'xfrm', 'policy')).toContain('socket out');
}

it.each<[string, string, () => void | Promise<void>]>([
  ['XDP on the pair of the endpoint', `a program of XDP on ${toWeb}`, () => dropBy('xdp', toWeb, node)],
  ['XDP in the endpoint', 'a program of XDP on eth0 in the pod', () => dropBy('xdp', 'eth0', web)],
  ['tcx on the pair of the client', `a program of tcx on ${toClient}`, () => dropBy('tcx ingress', toClient, node)],
  ['tcx in the client', 'a program of tcx on eth0 in the pod', () => dropBy('tcx egress', 'eth0', client)],
  ['a queue that drops all', `a queue of tc on ${toWeb} (blackhole)`, () => queue(toWeb, 'blackhole')],
  ['such a queue in the client', '(blackhole)', () => queue('eth0', 'blackhole', client)],
  ['a bucket for less than a frame', '(tbf)', () => queue(toWeb, 'tbf rate 1mbit burst 60 limit 1000')],
  ['a bucket where less than a frame may wait', '(tbf)', () => queue(toWeb, 'tbf rate 1mbit burst 100kb limit 10')],
  ['a queue without room', '(pfifo)', () => queue(toWeb, 'pfifo limit 0')],
  ['a queue with room for less than a frame', '(bfifo)', () => queue('eth0', 'bfifo limit 60', client)],
  ['a class that sends a byte a second', '(htb)', () => classed('8bit burst 1')],
  ['classes without room for what none is for', '(htb)', () => queue(toWeb, 'htb direct_qlen 0')],
  ['a filter at a queue', 'a filter of tc', () => filterAtQueue('action mirred egress redirect dev lo')],
  ['IPsec in the client', 'IPsec of the pod', () => ipsec(`dir out dst ${VIP}`, client)],
  ['IPsec in the endpoint', 'IPsec of the pod', () => ipsec(`dir in src ${client.ip()}`, web)],
  ['IPsec without a policy in the client', 'no policy is for', () => ipsecDefault('out', client)],
  ['IPsec without a policy in the endpoint', 'no policy is for', () => ipsecDefault('in', web)],
  ['a pair whose end is narrow', 'takes 68', () => faults.ip(`link set ${toWeb} mtu 68`, `link set ${toWeb} mtu 1500`)],
])('of %s it cannot be told', async (_, text, begin) => {
  expect(await world.ask(VIP, client.ip())).toMatchObject({ verdict: 'works' });
  await begin();
  const answer = await world.ask(VIP, client.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining(text) });
  expect(await answers(client, VIP)).toBe(false);
});

it.each<[string, () => void | Promise<void>]>([
  ['a bucket as the CNI plugin makes them', () => queue(toWeb, 'tbf rate 100mbit burst 100kb limit 1mb')],
  ['a limit of what the pod sends, as the CNI plugin makes it', limitSent],
  ['a queue with a limit', () => queue(toWeb, 'pfifo limit 100')],
  ['a queue with a limit in bytes', () => queue(toWeb, 'bfifo limit 100kb')],
  ['a class with enough', () => classed('10mbit')],
  [
    'a class that borrows',
    () => {
      classed('10mbit');
      const inner = `class add dev ${toWeb} parent 1:1 classid 1:2 htb rate 8bit ceil 10mbit`;
      node.namespace.run('tc', ...inner.split(' '));
    },
  ],
  ['a filter that chooses a class', () => filterAtQueue('flowid 1:1')],
  ['IPsec for others', () => ipsec('dir out dst 10.99.0.0/16', client)],
  ['IPsec that lets packets pass as they are', () => letPass('dir fwd src 0.0.0.0/0 dst 0.0.0.0/0')],
  // As charon of strongSwan 5.9.8 makes them, with no connection configured (ip xfrm policy: socket in, socket out).
  ['a daemon of IKE', listenAsIke],
])('%s stops nothing', async (_, begin) => {
  await begin();
  const answer = await world.ask(VIP, client.ip());
  expect(answer.verdict, answer.cause).toBe('works');
  expect(await answers(client, VIP)).toBe(true);
});

it('of a queue below the link to the outside, and of one of the loopback link, it cannot be told', async () => {
  await node.serve({ port: 9090 });
  const itself = { destination: `${node.ip()}:9090`, source: 'node' };
  const said = async (question: typeof itself) => (await world.askHere([question]))[0]!;
  expect(await said(itself)).toMatchObject({ verdict: 'works' });
  queue('lo', 'pfifo limit 0');
  expect(await said(itself)).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('on lo (pfifo)') });
  expect(await answers(node, node.ip(), 9090)).toBe(false);
  faults.mend();
  // Whoever is on the link of a VLAN comes by the one that carries it.
  faults.ip('link add link eth0 name out10 type macvlan', 'link del out10');
  world.run('ip', 'link', 'set', 'out10', 'up');
  world.run('ip', 'address', 'add', '192.168.77.1/24', 'dev', 'out10');
  faults.ip('link add link eth0 name out10 type macvlan', 'link del out10', outside);
  outside.namespace.run('ip', 'link', 'set', 'out10', 'up');
  outside.namespace.run('ip', 'address', 'add', '192.168.77.2/24', 'dev', 'out10');
  const fromOutside = { destination: '192.168.77.1:9090', source: '192.168.77.2' };
  expect(await answers(outside, '192.168.77.1', 9090)).toBe(true);
  expect(await said(fromOutside)).toMatchObject({ verdict: 'works' });
  queue('eth0', 'pfifo limit 0');
  expect(await said(fromOutside)).toMatchObject({ cause: expect.stringContaining('on eth0 (pfifo)') });
  expect(await answers(outside, '192.168.77.1', 9090)).toBe(false);
});

it('client-ports: the kernel has no port to give', async () => {
  faults.sysctl('net.ipv4.ip_local_reserved_ports', '40000-40001', client);
  faults.sysctl('net.ipv4.ip_local_port_range', '40000 40001', client);
  await faults.expectCode(VIP, client.ip(), 'client-ports');
  await expect(client.connect({ ip: VIP, port: 80 })).rejects.toThrow('EADDRNOTAVAIL');
  expect(await answers(node, VIP)).toBe(true);
  expect(await world.ask(VIP, 'node')).toMatchObject({ verdict: 'works' });
});

it('whether a client without room for answers asks for more cannot be told', async () => {
  faults.sysctl('net.ipv4.tcp_rmem', '1 1 1', client);
  const answer = await world.ask(VIP, client.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('tcp_rmem') });
  expect(await answers(client, VIP)).toBe(false);
});

it('whether one of few ports is left cannot be told', async () => {
  faults.run('conntrack', '-F', '-F');
  faults.sysctl('net.ipv4.ip_local_port_range', '40002 40003', client);
  expect(await world.ask(VIP, client.ip())).toMatchObject({ verdict: 'works' });
  const held = [await client.hold({ ip: VIP, port: 80 }), await client.hold({ ip: VIP, port: 80 })];
  await expect(client.connect({ ip: VIP, port: 80 })).rejects.toThrow('EADDRNOTAVAIL');
  const answer = await world.ask(VIP, client.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('no more ports') });
  for (const one of held) await one.close();
});
