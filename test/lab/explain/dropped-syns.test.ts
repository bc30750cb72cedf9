import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, type Load, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { Faults } from './faults.ts';

// First packets of TCP that come to a socket that listens, and that it drops: those without the signature it wants, and
// those it has no room for.

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, web2, client, outside } = world;
const NODE_PORT = 30_081;
const [CLIENT, CLIENT_6, OTHER] = [client.ip(), client.ip('IPv6'), '10.244.1.200'];

beforeAll(async () => {
  const ports = [{ port: 80, nodePort: NODE_PORT }];
  await world.begin([...served('shop/web', '10.96.0.10', [on(node, web.ip())], { type: 'NodePort', ports }, 8101)]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** Whether it is connected; what comes back is not looked at. */
async function connects(from: Host, ip: string, port: number): Promise<boolean> {
  const { kind } = await from.connect({ ip, port }, { timeoutMs: 800 });
  return !['refused', 'timeout'].includes(kind);
}

/** A socket in pod web that listens for all and takes connections. @param prepare what is done with it first, `$s` in words of Perl */
async function listen(port: number, family: 'IPv4' | 'IPv6', prepare = '', backlog = 64): Promise<void> {
  const address =
    family === 'IPv4' ? `pack_sockaddr_in(${port}, INADDR_ANY)` : `pack_sockaddr_in6(${port}, IN6ADDR_ANY)`;
  const script = `use Socket qw(:all);
    socket(my $s, ${family === 'IPv4' ? 'PF_INET' : 'PF_INET6'}, SOCK_STREAM, 0) or die;
    setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1) or die;
    ${prepare}
    bind($s, ${address}) or die;
    listen($s, ${backlog}) or die;
    $| = 1; print "ready";
    while (accept(my $c, $s)) { close $c; }`;
  const server = spawn('ip', ['netns', 'exec', web.namespace.name, 'perl', '-e', script]);
  faults.undo(() => server.kill('SIGKILL'));
  const [said] = await Promise.race([once(server.stdout, 'data'), once(server.stderr, 'data')]);
  expect(String(said)).toBe('ready');
}

/** TCP_MD5SIG_EXT of struct tcp_md5sig: packets from these addresses must be signed. */
function signedFrom(ip: string, prefixLength: number): string {
  const address = ip.includes(':')
    ? `pack_sockaddr_in6(0, inet_pton(AF_INET6, '${ip}'))`
    : `pack_sockaddr_in(0, inet_aton('${ip}'))`;
  return `setsockopt($s, IPPROTO_TCP, 32, pack('a128CCSla80', ${address}, 1, ${prefixLength}, 6, 0, 'secret')) or die "key: $!";`;
}

it.each([
  ['the client', 'IPv4', signedFrom(CLIENT, 32), CLIENT],
  ['a network of the client', 'IPv4', signedFrom('10.244.0.0', 16), CLIENT],
  ['one of several', 'IPv4', signedFrom(OTHER, 32) + signedFrom(CLIENT, 32), CLIENT],
  ['a client of IPv4, at a socket of both families', 'IPv6', signedFrom(`::ffff:${CLIENT}`, 32), CLIENT],
  ['a client of IPv6', 'IPv6', signedFrom(CLIENT_6, 128), CLIENT_6],
] as const)('a socket that wants packets signed of %s', async (_, family, prepare, from) => {
  await listen(8100, family, prepare);
  const ip = web.ip(from === CLIENT ? 'IPv4' : 'IPv6');
  const answer = await world.ask(from === CLIENT ? `${ip}:8100` : `[${ip}]:8100`, from);
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('TCP-MD5') });
  expect(JSON.stringify(answer)).not.toContain('secret');
  expect(await connects(client, ip, 8100)).toBe(false);
});

it.each([
  ['somebody else', 'IPv4', signedFrom(OTHER, 32)],
  ['all of IPv6', 'IPv6', signedFrom('::', 0)],
] as const)('a socket that wants packets signed of %s takes those of the client', async (_, family, prepare) => {
  await listen(8100, family, prepare);
  const answer = await world.ask(`${web.ip()}:8100`, CLIENT);
  expect(answer.verdict, answer.cause).toBe('works');
  expect(await connects(client, web.ip(), 8100)).toBe(true);
});

it('what is printed of netlink has no keys', async () => {
  await listen(8100, 'IPv4', signedFrom(CLIENT, 32));
  process.env.NODEPLANE_NETLINK_DEBUG = '1';
  faults.undo(() => delete process.env.NODEPLANE_NETLINK_DEBUG);
  const { stderr } = await world.command('explain', `${web.ip()}:8100`, '--from', CLIENT);
  expect(stderr).toContain('seq');
  expect(stderr).not.toContain(Buffer.from('secret').toString('hex'));
});

it('who must sign goes by the address that the endpoint sees', async () => {
  await listen(8101, 'IPv4', signedFrom(outside.ip(), 32));
  const works = await world.ask(`node:${NODE_PORT}`, outside.ip());
  expect(works.verdict, works.cause).toBe('works');
  expect(await connects(outside, node.ip(), NODE_PORT)).toBe(true);
});

/** Connections to a port of pod web that nobody ends to open, as many as there is room for. */
async function crowd(port: number): Promise<Load> {
  const lost = `tcp sport ${port} drop;`;
  faults.nft(`table inet lost { chain in { type filter hook input priority 0; ${lost} } }`, 'inet lost', web2);
  const load = await web2.startLoad({ ip: web.ip(), port }, { perSecond: 40, timeoutMs: 300 });
  const opening = () =>
    web.namespace.run('ss', '-Htn', 'state', 'syn-recv', `sport = :${port}`).trim().split('\n').length;
  await expect.poll(opening, { timeout: patient(8000) }).toBeGreaterThan(8);
  return load;
}

it.each([
  ['its backlog', 8102, 'IPv4', 8, 128],
  ['its backlog, at a socket of both families', 8103, 'IPv6', 8, 128],
  ['what is left to those nobody knows', 8104, 'IPv4', 64, 12],
] as const)('without syncookies a socket has room for %s', async (_, port, family, backlog, most) => {
  faults.sysctl('net.ipv4.tcp_syncookies', '0', web);
  faults.sysctl('net.ipv4.tcp_max_syn_backlog', `${most}`, web);
  await listen(port, family, '', backlog);
  const works = await world.ask(`${web.ip()}:${port}`, CLIENT);
  expect(works.verdict, works.cause).toBe('works');
  expect(await connects(client, web.ip(), port)).toBe(true);
  web.namespace.run('ip', 'tcp_metrics', 'flush');
  const load = await crowd(port);
  const answer = await world.ask(`${web.ip()}:${port}`, CLIENT);
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('being opened') });
  expect(await connects(client, web.ip(), port)).toBe(false);
  // Those to another port do not count.
  await listen(8105, family, '', backlog);
  const other = await world.ask(`${web.ip()}:8105`, CLIENT);
  expect(other.verdict, other.cause).toBe('works');
  await load.stop();
});

it('with syncookies there is always room', async () => {
  await listen(8106, 'IPv4', '', 8);
  const load = await crowd(8106);
  const answer = await world.ask(`${web.ip()}:8106`, CLIENT);
  expect(answer.verdict, answer.cause).toBe('works');
  expect(await connects(client, web.ip(), 8106)).toBe(true);
  await load.stop();
});
