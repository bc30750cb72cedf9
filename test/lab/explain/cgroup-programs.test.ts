import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Answer } from '../../../src/explain/index.ts';
import { type Host, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { startProgram } from './bpf-program.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Programs of BPF on cgroups, as a proxy without rules (Cilium's) has them on the root. Here they are on a cgroup of the test's own, which
// is the root for who asks, as it is in a container; the client's process is in it. Who asks from elsewhere sees those of the sockets that
// decide.

const [VIP, EMPTY] = ['10.96.0.10', '10.96.0.11'];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
const mounted = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1] ?? '/sys/fs/cgroup';
const cgroup = join(mounted, `nplab-${process.pid}-bpf`);
/** As that of a container in that of its pod. */
const inner = join(cgroup, 'inner');

beforeAll(async () => {
  for (const one of [cgroup, inner]) mkdirSync(one);
  await world.begin([...served('shop/web', VIP, [on(node, web.ip())]), ...served('shop/empty', EMPTY, [])]);
}, 300_000);
afterAll(async () => {
  await world.end();
  for (const one of [inner, cgroup]) rmdirSync(one);
  removeAll();
});

/** What refuses the call, or drops the packet. */
const PROGRAMS = {
  inet4_connect: { type: 18, returns: 0, attach: 10 },
  inet_ingress: { type: 8, returns: 0, attach: 0 },
  inet_egress: { type: 8, returns: 0, attach: 1 },
  udp4_sendmsg: { type: 18, returns: 0, attach: 14 },
} as const;

const refuseBy = (program: keyof typeof PROGRAMS) =>
  startProgram(
    faults,
    PROGRAMS[program],
    `do { sysopen(CGROUP, '${cgroup}', O_RDONLY) or die "open: $!"; fileno CGROUP }`,
  );

/** Runs a command in the cgroup and in the network of a host. */
function inside(host: Host, ...command: string[]): Promise<{ readonly stdout: string; readonly status: number }> {
  const enter = `echo $$ > ${cgroup}/cgroup.procs; exec unshare -m sh -c 'mount --bind ${cgroup} ${mounted} && exec "$@"' sh "$@"`;
  const words = ['-c', enter, 'sh', 'nsenter', `--net=${host.namespace.path}`, ...command];
  return new Promise((resolve) => {
    execFile('sh', words, (error, stdout) => resolve({ stdout, status: error ? Number(error.code) : 0 }));
  });
}

async function ask(destination: string): Promise<Answer> {
  const words = ['explain', destination, '--from', client.ip(), '-o', 'json'];
  return JSON.parse((await inside(node, builtProgram('nodeplane'), ...words)).stdout) as Answer;
}

/** As on the node itself; `ip netns exec` would hide the cgroups. */
function askOutside(destination: string, protocol = 'TCP'): Promise<Answer> {
  const words = ['explain', destination, '--from', client.ip(), '--proto', protocol.toLowerCase(), '-o', 'json'];
  return new Promise((resolve) => {
    const command = [`--net=${node.namespace.path}`, builtProgram('nodeplane'), ...words];
    execFile('nsenter', command, (_, stdout) => resolve(JSON.parse(stdout) as Answer));
  });
}

const connects = async () =>
  (await inside(client, 'timeout', '2', 'bash', '-c', `exec 3<>/dev/tcp/${VIP}/80`)).status === 0;

it.each<keyof typeof PROGRAMS>(['inet4_connect', 'inet_egress'])('of %s it cannot be told', async (program) => {
  await expect.poll(() => ask(VIP), { timeout: patient(5000) }).toMatchObject({ verdict: 'works' });
  expect(await connects()).toBe(true);
  await refuseBy(program);
  const answer = await ask(VIP);
  const cause = expect.stringContaining(`programs of BPF see all sockets (${program})`);
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause });
  expect(await connects()).toBe(false);
  // Who is not in the cgroup is not concerned, and not told so.
  expect(await answers(client, VIP)).toBe(true);
  expect(await world.ask(VIP, client.ip())).toMatchObject({ verdict: 'works' });
});

it('what fails by the rules may be led past them by such programs, but not past those that only see packets', async () => {
  const fails = { verdict: 'fails', code: 'no-endpoints' };
  await expect.poll(() => ask(EMPTY), { timeout: patient(5000) }).toMatchObject(fails);
  await refuseBy('inet_egress');
  expect(await ask(EMPTY)).toMatchObject(fails);
  await refuseBy('inet4_connect');
  expect(await ask(EMPTY)).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('changes nothing') });
});

/** A server in a host's network and in the inner cgroup. */
async function listen(host: Host, protocol: 'TCP' | 'UDP', port: number): Promise<void> {
  const script = `use Socket;
    socket(my $s, PF_INET, ${protocol === 'TCP' ? 'SOCK_STREAM' : 'SOCK_DGRAM'}, 0) or die;
    setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1) or die;
    bind($s, pack_sockaddr_in(${port}, inet_aton('${host.ip()}'))) or die;
    ${protocol === 'TCP' ? 'listen($s, 64) or die;' : ''}
    $| = 1; print 'ready';
    while (1) { ${protocol === 'TCP' ? 'accept(my $c, $s); close $c;' : 'my $from = recv($s, my $data, 999, 0); send($s, q({}) . chr(10) . $data, 0, $from);'} }`;
  const enter = `echo $$ > ${inner}/cgroup.procs; exec ip netns exec ${host.namespace.name} perl -e "$0"`;
  const server = spawn('sh', ['-c', enter, script]);
  faults.undo(() => server.kill('SIGKILL'));
  const [said] = await Promise.race([once(server.stdout, 'data'), once(server.stderr, 'data')]);
  expect(String(said)).toBe('ready');
}

/** Whether a connection is taken, or a datagram answered. */
async function isHeard(protocol: 'TCP' | 'UDP', port: number): Promise<boolean> {
  const { kind } = await client.connect({ ip: web.ip(), port, protocol }, { timeoutMs: 800 });
  return !['refused', 'timeout'].includes(kind);
}

it.each([
  ['inet_ingress', 'TCP', 8110],
  ['inet_egress', 'TCP', 8111],
  ['inet_ingress', 'UDP', 8112],
  ['udp4_sendmsg', 'UDP', 8113],
] as const)('of %s on the cgroup of the pod that listens (%s) it cannot be told', async (program, protocol, port) => {
  await listen(web, protocol, port);
  const works = await askOutside(`${web.ip()}:${port}`, protocol);
  expect(works.verdict, works.cause).toBe('works');
  expect(await isHeard(protocol, port)).toBe(true);
  await refuseBy(program);
  const answer = await askOutside(`${web.ip()}:${port}`, protocol);
  const cause = expect.stringContaining(`programs of BPF see what comes to the process in pod ${web.ip()}`);
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause });
  expect(await isHeard(protocol, port)).toBe(false);
});

it('calls to connect are nothing to who listens', async () => {
  await listen(web, 'TCP', 8114);
  await refuseBy('inet4_connect');
  const answer = await askOutside(`${web.ip()}:8114`);
  expect(answer.verdict, answer.cause).toBe('works');
  expect(await isHeard('TCP', 8114)).toBe(true);
});

it("on the cgroup of the client's pod they are seen where something listens in it", async () => {
  await listen(client, 'UDP', 8115);
  const works = await askOutside(VIP);
  expect(works.verdict, works.cause).toBe('works');
  await refuseBy('inet4_connect');
  const cause = expect.stringContaining(`programs of BPF see sockets of the pod ${client.ip()} (inet4_connect)`);
  expect(await askOutside(VIP)).toMatchObject({ verdict: 'unknown', cause });
  expect(await connects()).toBe(false);
});
