import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { NodeplaneError } from '../core/index.ts';

/** `nodeplane demo`: the demo is a program of its own, because it is made of the test lab. */
export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('make a two-node cluster of network namespaces on this machine and show its pods and Services at work')
    .option('--keep', 'leave it up and print how to explore it')
    .option('--remove', 'remove a demo that was kept')
    .action(async (flags: { readonly keep?: boolean; readonly remove?: boolean }) => {
      const args = [...(flags.keep ? ['--keep'] : []), ...(flags.remove ? ['--remove'] : [])];
      process.exitCode = await runDemo(args);
    });
}

/**
 * Runs `nodeplane-demo`, which the build puts beside this program, on the same terminal.
 *
 * @returns its exit status; 128 + signal number when a signal ended it
 * @throws ERR_EXEC when this installation has no demo
 */
export function runDemo(args: readonly string[]): Promise<number> {
  const demo = join(dirname(fileURLToPath(import.meta.url)), 'nodeplane-demo');
  if (!existsSync(demo)) {
    const message = `Cannot run the demo: this installation has none at "${demo}"; run it from the source repository`;
    return Promise.reject(new NodeplaneError('ERR_EXEC', message, { facts: { path: demo } }));
  }
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [demo, ...args], { stdio: 'inherit' });
    // The demo cleans up before it ends: wait for it instead of dying first.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
    child.on('error', (cause) => reject(new NodeplaneError('ERR_EXEC', `Cannot run "${demo}"`, { cause })));
    child.on('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
}
