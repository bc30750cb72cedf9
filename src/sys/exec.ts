import { NodeplaneError } from '../core/index.ts';

/** What to give a program. */
export interface ExecOptions {
  /** Written to its standard input, which is then closed. */
  readonly input?: string | Buffer;
  /** Killed (SIGKILL) after this long. @default 60000 */
  readonly timeoutMs?: number;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface ExecResult {
  /** Exit status; 128 + signal number when a signal ended it. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs programs; injected so that tests can stand in for iptables. */
export type Exec = (program: string, args: readonly string[], options?: ExecOptions) => Promise<ExecResult>;

/**
 * Runs a program to its end. A non-zero status is a result, not an error.
 *
 * @throws ERR_EXEC when it cannot be started or exceeds its time
 */
export const exec: Exec = async (program, args, options = {}) => {
  // Loaded when it is needed: the CNI plugin runs no programs, and starts 5 ms earlier without it.
  const { spawn } = await import('node:child_process');
  return new Promise((resolve, reject) => {
    const timeoutMs = options.timeoutMs ?? 60_000;
    const child = spawn(program, args, { env: { ...process.env, ...options.env }, stdio: 'pipe' });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, timeoutMs);
    // Without a free descriptor there are no streams, and `error` follows.
    child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
    // A program that exits before reading all its input breaks the pipe; its status says what happened.
    child.stdin?.on('error', () => {});
    child.stdin?.end(options.input);
    child.on('error', (cause) => {
      clearTimeout(timer);
      reject(new NodeplaneError('ERR_EXEC', `Cannot run ${program}`, { facts: { program }, cause }));
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (timedOut) {
        const message = `${program} ${args.join(' ')} did not end within ${timeoutMs} ms and was killed`;
        reject(new NodeplaneError('ERR_EXEC', message, { facts: { program, timeoutMs } }));
        return;
      }
      resolve({
        status: code ?? 128 + signalNumber(signal),
        stdout: Buffer.concat(stdout).toString('utf8'),
        stderr: Buffer.concat(stderr).toString('utf8'),
      });
    });
  });
};

function signalNumber(signal: NodeJS.Signals | null): number {
  return signal === 'SIGKILL' ? 9 : signal === 'SIGTERM' ? 15 : 0;
}
