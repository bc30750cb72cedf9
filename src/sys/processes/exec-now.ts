/** Programs that are run so answer in milliseconds. */
const TIMEOUT_MS = 10_000;
const OUTPUT_LIMIT = 64 * 1024 * 1024;

/**
 * Runs a small program to its end while this thread waits: for a command line that reads one thing after the other, never in the
 * agent.
 *
 * @returns what it printed; undefined when it is not there, fails, or takes more than 10 s
 */
export function execNow(program: string, args: readonly string[]): string | undefined {
  // Loaded when it is needed, as for `exec`.
  const { spawnSync } = process.getBuiltinModule('node:child_process');
  const { status, stdout } = spawnSync(program, args, {
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: TIMEOUT_MS,
    maxBuffer: OUTPUT_LIMIT,
    encoding: 'utf8',
  });
  return status === 0 ? stdout : undefined;
}
