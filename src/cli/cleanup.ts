import type { Command } from 'commander';
import { cleanup } from '../agent/index.ts';

/** `nodeplane cleanup`: the uninstall of the rules; prints what it looked at. */
export function addCleanupCommand(program: Command): void {
  program
    .command('cleanup')
    .description('remove every rule of nodeplane and of kube-proxy from this machine, and nothing else')
    .action(async () => {
      for (const line of await cleanup()) process.stdout.write(`${line}\n`);
    });
}
