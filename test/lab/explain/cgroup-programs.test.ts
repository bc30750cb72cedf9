import { execFile } from 'node:child_process';
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
// is the root for who asks, as it is in a container; the client's process is in it.

const [VIP, EMPTY] = ['10.96.0.10', '10.96.0.11'];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
const mounted = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1] ?? '/sys/fs/cgroup';
const cgroup = join(mounted, `nplab-${process.pid}-bpf`);

beforeAll(async () => {
  mkdirSync(cgroup);
  await world.begin([...served('shop/web', VIP, [on(node, web.ip())]), ...served('shop/empty', EMPTY, [])]);
}, 300_000);
afterAll(async () => {
  await world.end();
  rmdirSync(cgroup);
  removeAll();
});

/** What refuses the call, or drops the packet. */
const PROGRAMS = {
  inet4_connect: { type: 18, returns: 0, attach: 10 },
  inet_egress: { type: 8, returns: 0, attach: 1 },
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
