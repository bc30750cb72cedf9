import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Which of the sockets at a port the kernel chooses, and processes of the node without a Service.

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;

const BY_UDP = { ports: [{ port: 80, protocol: 'UDP' }] } as const;
const at = (ip: string) => withPort(ip, 80);
const [TO_NODE, TO_NODE_6, TO_WEB] = ['10.96.0.20', 'fd00:10:96::20', '10.96.0.21'];

beforeAll(async () => {
  await world.begin([
    ...served('shop/node', TO_NODE, [on(node, node.ip())], BY_UDP, 5300),
    ...served('shop/node6', TO_NODE_6, [on(node, node.ip('IPv6'))], BY_UDP, 5300),
    ...served('shop/web', TO_WEB, [on(node, web.ip())], BY_UDP),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/**
 * A TCP socket (in pod web) that listens, and takes no connection unless `accepts`; options of SOL_SOCKET by number, as
 * perl writes them.
 */
async function listen(at: string, port: number, options: string, accepts = false, on: Host = web): Promise<void> {
  const script = `use Socket;
    socket(my $s, PF_INET, SOCK_STREAM, 0) or die;
    my %options = (${options});
    setsockopt($s, SOL_SOCKET, $_, $options{$_}) or die for keys %options;
    bind($s, sockaddr_in(${port}, inet_aton('${at}'))) or die;
    listen($s, ${accepts ? 64 : 0}) or die;
    $| = 1; print "ready";
    while (${accepts ? 1 : 0}) { accept(my $c, $s); sysread($c, my $data, 99); syswrite($c, '{}'); close $c; }
    sleep;`;
  const listening = spawn('ip', ['netns', 'exec', on.namespace.name, 'perl', '-e', script]);
  faults.undo(() => listening.kill('SIGKILL'));
  await once(listening.stdout, 'data');
}

/** As Java listens, whose sockets are all of IPv6. */
function createServerIn(at: string, port: number) {
  const script = `use Socket qw(:all);
    socket(my $s, PF_INET6, SOCK_STREAM, 0) or die;
    setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1) or die;
    bind($s, sockaddr_in6(${port}, inet_pton(AF_INET6, '${at}'))) or die;
    listen($s, 64) or die;
    $| = 1; print "ready"; sleep;`;
  return spawn('ip', ['netns', 'exec', web.namespace.name, 'perl', '-e', script]);
}

it.each([
  ['the address of the pod', `::ffff:${web.ip()}`, true],
  ['all addresses of IPv4', '::ffff:0.0.0.0', true],
  ['loopback', '::ffff:127.0.0.1', false],
])('a socket of IPv6 that is bound to IPv4, at %s', async (_, at, works) => {
  const port = 8100;
  const server = createServerIn(at, port);
  faults.undo(() => server.kill('SIGKILL'));
  await once(server.stdout, 'data');
  const { kind } = await client.connect({ ip: web.ip(), port }, { timeoutMs: 1500 });
  expect(kind === 'refused').toBe(!works);
  const answer = await world.ask(`${web.ip()}:${port}`, client.ip());
  expect(answer, answer.cause).toMatchObject(
    works ? { verdict: 'works' } : { verdict: 'fails', code: 'loopback-bound' },
  );
});

it.each(['lo', 'eth0'])('of a socket that is bound to %s it cannot be told', async (device) => {
  await listen('0.0.0.0', 8091, `25 => "${device}"`, true);
  const answer = await world.ask(`${web.ip()}:8091`, client.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('one interface') });
  expect((await client.connect({ ip: web.ip(), port: 8091 }, { timeoutMs: 800 })).kind === 'refused').toBe(
    device === 'lo',
  );
});

it.each([
  ['a pod', web, 'unknown'],
  ['the node', node, 'fails'],
] as const)('what a process in %s sends may be marked, and policy rules ask for marks', async (_, on, verdict) => {
  await listen('0.0.0.0', 8095, '36 => 7', true, on);
  const ask = () => world.ask(`${on.ip()}:8095`, on === node ? outside.ip() : client.ip());
  const connected = async () =>
    (await (on === node ? outside : client).connect({ ip: on.ip(), port: 8095 }, { timeoutMs: 800 })).kind;
  expect(await ask()).toMatchObject({ verdict: 'works' });
  expect(await connected()).not.toBe('timeout');
  faults.ip('rule add fwmark 7 prohibit prio 99', 'rule del prio 99', on);
  const answer = await ask();
  expect(answer, answer.cause).toMatchObject({ verdict, cause: expect.stringContaining('0x7') });
  expect(await connected()).toBe('timeout');
});

it('a socket of the address itself is better than one of all, which is full', async () => {
  await listen('0.0.0.0', 8092, '15 => 1');
  await client.connectMany({ ip: web.ip(), port: 8092 }, 6, { timeoutMs: 500 });
  expect(await world.ask(`${web.ip()}:8092`, client.ip())).toMatchObject({ verdict: 'fails', code: 'accept-queue' });
  expect(await answers(client, web.ip(), 8092)).toBe(false);
  await listen(web.ip(), 8092, '15 => 1', true);
  const answer = await world.ask(`${web.ip()}:8092`, client.ip());
  expect(answer.verdict, answer.cause).toBe('works');
  const { kind } = await client.connect({ ip: web.ip(), port: 8092 }, { timeoutMs: 1500 });
  expect(['refused', 'timeout']).not.toContain(kind);
});

it('which of several sockets takes a connection is not known, where some are full', async () => {
  await listen('0.0.0.0', 8093, '15 => 1');
  await client.connectMany({ ip: web.ip(), port: 8093 }, 6, { timeoutMs: 500 });
  await listen('0.0.0.0', 8093, '15 => 1', true);
  const answer = await world.ask(`${web.ip()}:8093`, client.ip());
  expect(answer.verdict, answer.cause).toBe('unknown');
});

it('what a process of the node listens on is no NodePort, and answers', async () => {
  await node.serve({ port: 9100 });
  const works = await world.ask('node:9100', outside.ip());
  expect(works.verdict, works.cause).toBe('works');
  expect(await answers(outside, node.ip(), 9100)).toBe(true);
  expect(await world.ask('node:9101', outside.ip())).toMatchObject({ verdict: 'fails', code: 'no-such-port' });
  expect(await answers(outside, node.ip(), 9101)).toBe(false);
});

it('a process that reads no datagrams gets no more once its buffer is full', async () => {
  const script = `use Socket;
    socket(my $s, PF_INET, SOCK_DGRAM, 0) or die;
    setsockopt($s, SOL_SOCKET, SO_RCVBUF, 4096) or die;
    bind($s, sockaddr_in(8094, INADDR_ANY)) or die;
    $| = 1; print "ready"; $SIG{USR1} = sub { while (my $from = recv($s, my $data, 99, MSG_DONTWAIT)) { } print "read"; }; sleep while 1;`;
  const server = spawn('ip', ['netns', 'exec', web.namespace.name, 'perl', '-e', script]);
  faults.undo(() => server.kill('SIGKILL'));
  await once(server.stdout, 'data');
  const works = await world.ask(`${web.ip()}:8094`, client.ip(), '--proto', 'udp');
  expect(works, works.cause).toMatchObject({ verdict: 'works' });
  await client.connectMany({ ip: web.ip(), port: 8094, protocol: 'UDP' }, 30, { timeoutMs: 50 });
  const dropped = () =>
    Number(/^Udp: .*\n?Udp: (?:\d+ ){4}(\d+)/m.exec(web.namespace.run('cat', '/proc/net/snmp'))?.[1]);
  const before = dropped();
  const answer = await world.ask(`${web.ip()}:8094`, client.ip(), '--proto', 'udp');
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('to be read') });
  await client.connect({ ip: web.ip(), port: 8094, protocol: 'UDP' }, { timeoutMs: 50 });
  expect(dropped()).toBe(before + 1);
  server.kill('SIGUSR1');
  await once(server.stdout, 'data');
  const again = await world.ask(`${web.ip()}:8094`, client.ip(), '--proto', 'udp');
  expect(again, again.cause).toMatchObject({ verdict: 'works' });
});

it.each([
  ['IPv4', TO_NODE],
  ['IPv6', TO_NODE_6],
] as const)(
  'from which address a process of the node answers UDP that listens on all is its affair, %s',
  async (family, ip) => {
    await node.serve({ port: 5300, protocol: 'UDP' });
    const cause = expect.stringContaining('IP_PKTINFO');
    expect(await world.ask(at(ip), client.ip(family))).toMatchObject({ verdict: 'unknown', cause });
    // One from Node.js asks for none.
    expect(await answers(client, ip, 80, 'UDP')).toBe(false);
    const own = await world.ask(at(ip), 'node');
    expect(own, own.cause).toMatchObject({ verdict: 'works' });
    expect(await answers(node, ip, 80, 'UDP')).toBe(true);
    await node.stopServing({ port: 5300, protocol: 'UDP' });
    await node.serve({ port: 5300, protocol: 'UDP', ip: node.ip(family) });
    const works = await world.ask(at(ip), client.ip(family));
    expect(works, works.cause).toMatchObject({ verdict: 'works' });
    expect(await answers(client, ip, 80, 'UDP')).toBe(true);
    await node.stopServing({ port: 5300, protocol: 'UDP' });
  },
);

it('so is that of a pod, whose routes may name another', async () => {
  const works = await world.ask(`${TO_WEB}:80`, client.ip());
  expect(works, works.cause).toMatchObject({ verdict: 'works' });
  expect(await answers(client, TO_WEB, 80, 'UDP')).toBe(true);
  faults.ip('addr add 10.244.1.150/32 dev lo', 'addr del 10.244.1.150/32 dev lo', web);
  const by = `${client.ip()} dev eth0`;
  faults.ip(`route add ${by} src 10.244.1.150`, `route del ${by}`, web);
  // What was answered for this client shows that it is.
  expect(await world.ask(`${TO_WEB}:80`, client.ip())).toMatchObject({ verdict: 'works' });
  node.namespace.run('conntrack', '-D', '-p', 'udp', '-d', TO_WEB);
  const cause = expect.stringContaining('from 10.244.1.150 unless');
  expect(await world.ask(`${TO_WEB}:80`, client.ip())).toMatchObject({ verdict: 'unknown', cause });
  expect(await answers(client, TO_WEB, 80, 'UDP')).toBe(false);
});
