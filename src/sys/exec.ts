import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { Writable } from 'node:stream';
import { NodeplaneError, yielder } from '../core/index.ts';
import { lineCutter } from './line-cutter.ts';
import { noteProgram } from './processes/own-programs.ts';

/** What to give a program. */
export interface ExecOptions {
  /** Written to its standard input, which is then closed. Pieces are taken as the program reads, and in slices of the event loop. */
  readonly input?: string | Buffer | Iterable<string>;
  /** It is killed (SIGKILL), with all it has started, after this long. @default 60000 */
  readonly timeoutMs?: number;
  /** It is killed when it prints more than this many bytes, to both of its streams together. @default 256 MiB */
  readonly outputLimit?: number;
  /**
   * Given each line of its standard output, without the line feed, as it is printed. What it throws ends the program and is thrown.
   * @default all is in the result's `stdout`
   */
  readonly readLine?: (line: string) => void;
  /** Kills it when aborted. @default never */
  readonly signal?: AbortSignal;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** How a program ended. */
export interface ExecResult {
  /** Exit status; 128 + signal number when a signal ended it. */
  readonly status: number;
  /** What was not given to `readLine`: whoever stands in for programs may give all of it here. */
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs programs; injected so that tests can stand in for iptables. */
export type Exec = (program: string, args: readonly string[], options?: ExecOptions) => Promise<ExecResult>;

/** The most any program of ours prints is `iptables-save`, some 300 bytes a rule: this is room for 800,000 rules. */
const OUTPUT_LIMIT = 256 * 1024 * 1024;

/**
 * Runs a program to its end, in a process group of its own. A non-zero status is a result, not an error. What a program
 * leaves running in its group counts as part of it as long as it holds the output open.
 *
 * @throws ERR_EXEC when it cannot be started, exceeds its time or its output, or is cancelled; at once, whatever holds its
 *   streams open. Nothing of its process group is left then.
 */
export const exec: Exec = async (program, args, options = {}) => {
  // Loaded when it is needed: the CNI plugin runs no programs, and starts 5 ms earlier without it.
  const { spawn } = await import('node:child_process');
  const { input, timeoutMs = 60_000, outputLimit = OUTPUT_LIMIT, signal, readLine } = options;
  const command = [program, ...args].join(' ');
  return new Promise((resolve, reject) => {
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    let printed = 0;
    let child: ChildProcess;
    const collect = (take: (chunk: Buffer) => void) => (chunk: Buffer) => {
      printed += chunk.length;
      if (printed > outputLimit) giveUp(failure(`printed more than ${outputLimit} bytes and was killed`));
      else tryTo(() => take(chunk));
    };
    const cutter = readLine && lineCutter(readLine);
    const failure = (how: string) =>
      new NodeplaneError('ERR_EXEC', `${command} ${how}`, { facts: { program, timeoutMs } });
    const onAbort = () => giveUp(failure('was cancelled'));
    const timer = setTimeout(() => giveUp(failure(`did not end within ${timeoutMs} ms and was killed`)), timeoutMs);
    const finish = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const cannotRun = (cause: unknown) => {
      finish();
      reject(new NodeplaneError('ERR_EXEC', `Cannot run ${program}`, { facts: { program }, cause }));
    };
    const giveUp = (error: unknown) => {
      finish();
      killGroup(child);
      // Somebody who left the group may still hold the other ends.
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
      child.unref();
      reject(error);
    };
    const tryTo = (work: () => void) => {
      try {
        work();
      } catch (error) {
        giveUp(error);
      }
    };

    if (signal?.aborted) {
      finish();
      reject(new NodeplaneError('ERR_EXEC', `${command} was cancelled`, { facts: { program } }));
      return;
    }
    try {
      child = spawn(program, args, { env: { ...process.env, ...options.env }, stdio: 'pipe', detached: true });
    } catch (error) {
      cannotRun(error);
      return;
    }
    const ended = noteProgram(program, child.pid);
    child.once('close', ended).once('error', ended);
    child.on('error', cannotRun);
    signal?.addEventListener('abort', onAbort);
    // Without a free descriptor there are no streams, and `error` follows.
    child.stdout?.on('data', collect(cutter ? cutter.take : (chunk) => stdout.push(chunk)));
    child.stderr?.on(
      'data',
      collect((chunk) => stderr.push(chunk)),
    );
    if (child.stdin) giveInput(child.stdin, input, cannotRun);
    child.on('close', (code, endedBy) => {
      finish();
      tryTo(() => cutter?.end());
      resolve({
        status: code ?? 128 + constants.signals[endedBy ?? 'SIGKILL'],
        stdout: Buffer.concat(stdout).toString('utf8'),
        stderr: Buffer.concat(stderr).toString('utf8'),
      });
    });
  });
};

/**
 * Writes all of the input, then closes it.
 *
 * @param onThrown told what the pieces threw while they were made
 */
function giveInput(stdin: Writable, input: ExecOptions['input'], onThrown: (cause: unknown) => void): void {
  // A program that exits before reading all its input breaks the pipe; its status says what happened.
  stdin.on('error', () => {});
  if (input === undefined || typeof input === 'string' || Buffer.isBuffer(input)) {
    stdin.end(input);
    return;
  }
  feed(stdin, input).catch((error: NodeJS.ErrnoException) => {
    // Errors of streams have a code.
    if (error.code === undefined) onThrown(error);
  });
}

async function feed(stdin: Writable, pieces: Iterable<string>): Promise<void> {
  const { pipeline } = await import('node:stream/promises');
  await pipeline(inTurns(pieces), stdin);
}

async function* inTurns(pieces: Iterable<string>): AsyncGenerator<string> {
  const rest = yielder();
  for (const piece of pieces) {
    yield piece;
    await rest();
  }
}

/** The kernel gives no new process the number of a group that still has members, so this meets nobody else's. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All of it has ended, or belongs to somebody else by now (a set-user-ID program).
  }
}
