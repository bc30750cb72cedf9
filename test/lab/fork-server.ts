import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inNetns, type NetnsHandle } from '../../src/sys/index.ts';

/** How a program ended, and what it said. */
export interface Ended {
  /** 128 and the signal where one ended it, as a shell has it. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** asm/unistd_64.h and asm-generic/unistd.h: setns(2). */
const SYS_SETNS = process.arch === 'arm64' ? 268 : 308;

/**
 * Runs programs in network namespaces for a process that is too large to fork thousands of times: a process of a test file, whose page tables
 * are copied each time. Between two pipes: `length netns NUL program NUL argument …`, and back
 * `status length length stdout stderr`, numbers of 32 bits, the lowest byte first. It ends with whoever holds the other ends.
 */
const SERVER = String.raw`
use strict;
my ($requests, $answers, $setns) = @ARGV;
# Ctrl-C goes to the whole group, and what is left is removed by programs that run here.
$SIG{$_} = 'IGNORE' for qw(INT TERM HUP);
open(my $in, '<:raw', $requests) or die;
open(my $out, '>:raw', $answers) or die;
sub take {
  my ($length, $bytes) = ($_[0], '');
  while (length $bytes < $length) { sysread($in, $bytes, $length - length $bytes, length $bytes) or exit }
  return $bytes;
}
sub become {
  my ($netns, $program, @words) = @_;
  $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
  open(my $place, '<', $netns) or die "Cannot open network namespace \"$netns\": $!\n";
  syscall($setns + 0, fileno $place, 0x40000000) == 0 or die "Cannot enter network namespace \"$netns\": $!\n";
  exec { $program } $program, @words or die "exec of \"$program\" failed: $!\n";
}
while (1) {
  my @words = split /\0/, take(unpack 'V', take(4)), -1;
  open(my $stdout, '+>:raw', undef) or die;
  open(my $stderr, '+>:raw', undef) or die;
  defined(my $child = fork) or die;
  if ($child == 0) {
    open(STDIN, '<', '/dev/null');
    open(STDOUT, '>&', $stdout);
    open(STDERR, '>&', $stderr);
    become(@words);
  }
  waitpid $child, 0;
  my $status = $? & 127 ? 128 + ($? & 127) : $? >> 8;
  my @said = map { seek $_, 0, 0; local $/; readline($_) // '' } $stdout, $stderr;
  my $answer = pack('VVV', $status, map { length } @said) . join '', @said;
  for (my $at = 0; $at < length $answer;) { $at += syswrite($out, $answer, length($answer) - $at, $at) // exit }
}
`;

interface Server {
  readonly requests: number;
  readonly answers: number;
}

let server: Server | undefined;

/**
 * Runs a program in a network namespace and waits for its end. Its /sys is that of this process.
 *
 * @param netns path of the namespace
 */
export function runForked(netns: string, program: string, args: readonly string[]): Ended {
  server ??= start();
  const { requests, answers } = server;
  const request = Buffer.from([netns, program, ...args].join('\0'));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(request.length);
  for (const bytes of [length, request]) writeFileSync(requests, bytes);
  const head = read(answers, 12);
  const [stdout, stderr] = [4, 8].map((at) => read(answers, head.readUInt32LE(at)).toString());
  return { status: head.readUInt32LE(0), stdout: stdout!, stderr: stderr! };
}

function start(): Server {
  const folder = mkdtempSync(join(tmpdir(), 'nodeplane-fork-'));
  const [requests, answers] = ['requests', 'answers'].map((name) => join(folder, name));
  try {
    execFileSync('mkfifo', [requests!, answers!]);
    const environment = { ...process.env, XTABLES_LOCKFILE: '/dev/null' };
    const words = ['-e', SERVER, requests!, answers!, String(SYS_SETNS)];
    const begin = () => spawn('perl', words, { stdio: ['ignore', 'ignore', 'inherit'], env: environment });
    // Where a test has entered a namespace of its own, it would be ended with that.
    const { firstNetns } = globalThis as { firstNetns?: NetnsHandle };
    (firstNetns ? inNetns(`/proc/self/fd/${firstNetns.fd}`, begin) : begin()).unref();
    return { requests: openSync(requests!, 'w'), answers: openSync(answers!, 'r') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function read(from: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const count = readSync(from, bytes, at, length - at, null);
    if (count === 0) throw new Error('The program that runs others for tests has ended');
    at += count;
  }
  return bytes;
}
