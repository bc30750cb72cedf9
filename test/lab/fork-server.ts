import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How long a program may take. */
const LIMIT_SECONDS = 300;

/** asm/unistd_64.h and asm-generic/unistd.h: setns(2). */
const SYS_SETNS = process.arch === 'arm64' ? 268 : 308;

/**
 * Runs programs for a process that is too large to fork thousands of times: a process of test files, whose page tables
 * are copied each time, and then its pages one by one as it writes to them. Between two pipes: `length length netns NUL
 * program NUL argument … stdin`, and back `status length length stdout stderr`, numbers of 32 bits, the lowest byte
 * first. It ends with whoever holds the other ends. The first namespace that is made starts it, before anybody can
 * enter one that is removed with all its processes.
 */
const SERVER = String.raw`
use strict;
my ($requests, $answers, $setns, $seconds) = @ARGV;
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
  # Whoever waits for the answer does nothing meanwhile, and would wait for ever.
  alarm $seconds;
  open(my $place, '<', $netns) or die "Cannot open network namespace \"$netns\": $!\n";
  syscall($setns + 0, fileno $place, 0x40000000) == 0 or die "Cannot enter network namespace \"$netns\": $!\n";
  exec { $program } $program, @words or die "exec of \"$program\" failed: $!\n";
}
while (1) {
  my ($length, $inputLength) = unpack 'VV', take(8);
  my @words = split /\0/, take($length), -1;
  open(my $stdin, '+>:raw', undef) or die;
  syswrite($stdin, take($inputLength)) if $inputLength;
  sysseek $stdin, 0, 0;
  open(my $stdout, '+>:raw', undef) or die;
  open(my $stderr, '+>:raw', undef) or die;
  defined(my $child = fork) or die;
  if ($child == 0) {
    open(STDIN, '<&', $stdin);
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
 * Runs a program to its end, which a signal brings after five minutes. Its /sys is that of this process.
 *
 * @param options the path of a network namespace to run it in, and what it reads from its standard input
 * @returns its output
 * @throws when its status is not 0, with it (128 and the signal where one ended it, as a shell has it) and both outputs
 */
export function runForked(
  program: string,
  args: readonly string[],
  { netns, input = '' }: { readonly netns?: string; readonly input?: string } = {},
): string {
  server ??= start();
  const { requests, answers } = server;
  const request = Buffer.from([netns ?? '/proc/self/ns/net', program, ...args].join('\0'));
  const stdin = Buffer.from(input);
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32LE(request.length);
  lengths.writeUInt32LE(stdin.length, 4);
  writeFileSync(requests, Buffer.concat([lengths, request, stdin]));
  const head = read(answers, 12);
  const status = head.readUInt32LE(0);
  const [stdout, stderr] = [4, 8].map((at) => read(answers, head.readUInt32LE(at)).toString());
  if (status === 0) return stdout!;
  const command = [program, ...args].join(' ');
  throw Object.assign(new Error(`Command failed${netns ? ` in ${netns}` : ''}: ${command}\n${stderr}`), {
    status,
    stdout,
    stderr,
  });
}

function start(): Server {
  const folder = mkdtempSync(join(tmpdir(), 'nodeplane-fork-'));
  const [requests, answers] = ['requests', 'answers'].map((name) => join(folder, name));
  try {
    execFileSync('mkfifo', [requests!, answers!]);
    const environment = { ...process.env, XTABLES_LOCKFILE: '/dev/null' };
    const words = ['-e', SERVER, requests!, answers!, String(SYS_SETNS), String(LIMIT_SECONDS)];
    spawn('perl', words, { stdio: ['ignore', 'ignore', 'inherit'], env: environment }).unref();
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
