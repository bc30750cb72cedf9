import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'vitest';
import type { Faults } from './faults.ts';

/** bpf(2), which has no function in the C library. */
const BPF: Readonly<Record<string, number>> = { x64: 321, arm64: 280 };

/** A program of two instructions. */
export interface BpfProgram {
  /** BPF_PROG_TYPE_* */
  readonly type: number;
  /** What it returns, always. */
  readonly returns: number;
  /** The BPF_* of where it hangs. */
  readonly attach: number;
}

/**
 * Puts a program where it shall hang, until the test ends.
 *
 * @param target in words of Perl, a number: index of a link, or descriptor of a cgroup
 * @param enter what the program that does it is run by: `ip netns exec …`
 */
export async function startProgram(
  faults: Faults,
  { type, returns, attach }: BpfProgram,
  target: string,
  enter: readonly string[] = [],
): Promise<void> {
  const script = `
    use Fcntl;
    my $code = pack('CCsl CCsl', 0xb7, 0, 0, ${returns}, 0x95, 0, 0, 0);
    my $licence = "GPL\\0";
    my $attributes = pack('LLPPLLQLLa16LL', ${type}, 2, $code, $licence, 0, 0, 0, 0, 0, 'test', 0, ${attach});
    my $fd = syscall(${BPF[process.arch]}, 5, $attributes, length $attributes);
    die "load: $!" if $fd < 0;
    my $where = pack('LLLLx48', $fd, ${target}, ${attach}, 0);
    die "attach: $!" if syscall(${BPF[process.arch]}, 28, $where, length $where) < 0;
    $| = 1; print 'ready'; sleep;`;
  const [first, ...words] = [...enter, 'perl', '-e', script];
  const child = spawn(first!, words);
  faults.undo(() => child.kill('SIGKILL'));
  const [said] = await Promise.race([once(child.stdout, 'data'), once(child.stderr, 'data')]);
  expect(String(said)).toBe('ready');
}
