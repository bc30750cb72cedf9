import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createFolder, own, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';

afterEach(removeAll);

/** Runs the plugin of the host against a socket; resolves to what it prints. */
function ask(socket: string, command = 'STATUS') {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: 'c',
    NODEPLANE_CNI_SOCKET: socket,
    NODEPLANE_CNI_SPOOL: '/nowhere',
  };
  const child = spawn(builtProgram('nodeplane-cni-shim'), [], { env, stdio: ['pipe', 'pipe', 'ignore'] });
  own(() => void child.kill('SIGKILL'));
  child.stdin.end('{}');
  let stdout = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  const ended = new Promise<{ status: number | null; stdout: string }>((resolve) =>
    child.on('close', (status) => resolve({ status, stdout })),
  );
  return { child, ended };
}

it('goes on after a signal in the middle of connecting, and of waiting for the answer', async () => {
  const path = join(createFolder('shim').path, 's.sock');
  // A listener that accepts nobody until it is told: Node.js would accept at once.
  const program = [
    'import os, socket, sys',
    's = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(0)',
    'print("listening", flush=True); sys.stdin.readline()',
    'while True:',
    '  c, _ = s.accept()',
    '  if os.fork() == 0:',
    '    while c.recv(65536): break',
    '    sys.stdin.readline()',
    '    c.sendall(b"NPCA\\x01\\0\\0\\0\\x02\\0\\0\\0{}"); os._exit(0)',
  ].join('\n');
  const server = spawn('python3', ['-c', program, path], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
  own(() => void process.kill(-server.pid!, 'SIGKILL'));
  await new Promise((resolve) => server.stdout.once('data', resolve));
  const first = ask(path);
  await expect.poll(() => systemCall(first.child.pid!)).toBe('read');
  const second = ask(path);
  await expect.poll(() => systemCall(second.child.pid!)).toBe('connect');
  await interrupt(second.child.pid!);
  await interrupt(first.child.pid!);
  expect(systemCall(second.child.pid!)).toBe('connect');
  server.stdin.write('accept\n');
  await expect.poll(() => systemCall(second.child.pid!)).toBe('read');
  await interrupt(second.child.pid!);
  server.stdin.end('answer\nanswer\n');
  for (const { ended } of [first, second]) expect(await ended).toEqual({ status: 0, stdout: '{}' });
});

it('names an answer that is longer than it takes', async () => {
  const path = join(createFolder('shim').path, 's.sock');
  const header = Buffer.from('NPCA\x01\0\0\0\0\0\0\0', 'latin1');
  header.writeUInt32LE((1 << 20) + 1, 8);
  const server = createServer((socket) => void socket.on('error', () => {}).once('data', () => socket.end(header)));
  own(() => void server.close());
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const { status, stdout } = await ask(path).ended;
  expect(status).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ code: 5, msg: 'The answer of the nodeplane agent is longer than 1 MiB' });
});

const stateOf = (pid: number) => /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];

/** A process that is stopped and goes on has its system calls with a time limit interrupted, signal handlers or not. */
async function interrupt(pid: number): Promise<void> {
  for (const [signal, state] of [
    ['SIGSTOP', 'T'],
    ['SIGCONT', 'S'],
  ] as const) {
    process.kill(pid, signal);
    await expect.poll(() => stateOf(pid)).toBe(state);
  }
}

/** Of <asm/unistd.h>, on x64 and arm64. */
const NUMBERS: Readonly<Record<string, string>> = { 0: 'read', 63: 'read', 42: 'connect', 203: 'connect' };

/** Which system call a process waits in, on a descriptor other than its standard input. */
function systemCall(pid: number): string | undefined {
  const [number = '', descriptor] = readFileSync(`/proc/${pid}/syscall`, 'utf8').split(' ');
  return descriptor === '0x0' ? undefined : NUMBERS[number];
}
