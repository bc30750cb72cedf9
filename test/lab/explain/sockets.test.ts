import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { ExplainWorld } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Which of the sockets at a port the kernel chooses, and processes of the node without a Service.

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;

beforeAll(() => world.begin([]), 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** A TCP socket in pod web that listens, and takes no connection unless `accepts`; options of SOL_SOCKET by number, as perl writes them. */
async function listen(at: string, port: number, options: string, accepts = false): Promise<void> {
  const script = `use Socket;
    socket(my $s, PF_INET, SOCK_STREAM, 0) or die;
    my %options = (${options});
    setsockopt($s, SOL_SOCKET, $_, $options{$_}) or die for keys %options;
    bind($s, sockaddr_in(${port}, inet_aton('${at}'))) or die;
    listen($s, ${accepts ? 64 : 0}) or die;
    $| = 1; print "ready";
    while (${accepts ? 1 : 0}) { accept(my $c, $s); sysread($c, my $data, 99); syswrite($c, '{}'); close $c; }
    sleep;`;
  const listening = spawn('ip', ['netns', 'exec', web.namespace.name, 'perl', '-e', script]);
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
