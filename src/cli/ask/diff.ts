import { type Command, Option } from 'commander';
import { showDiff } from '../../agent/index.ts';
import { NODE_PATHS } from '../../core/index.ts';
import { writeErr, writeOut } from '../standard-output.ts';

interface Flags {
  readonly repair?: boolean;
  readonly output: 'text' | 'json';
  readonly agentLockDir: string;
}

/** `nodeplane diff`: what is meant to be in the kernel against what is, by the agent of this node. */
export function addDiffCommand(program: Command): void {
  program
    .command('diff')
    .description(
      'compare what is meant to be in the kernel with what is: Services, routes, rules of pods. Exit status 0: equal, 1: different, 2: something cannot be told, 69: no agent answers',
    )
    .option('--repair', 'have the agent write what differs, and compare again')
    .addOption(
      new Option('-o, --output <form>', 'for people or for programs').choices(['text', 'json']).default('text'),
    )
    .option('--agent-lock-dir <path>', 'as given to the agent: its socket is in there', NODE_PATHS.runDir)
    .action(async ({ repair = false, output, agentLockDir }: Flags) => {
      const { stdout, stderr, exitCode } = await showDiff({
        directory: agentLockDir,
        repair,
        json: output === 'json',
        progress: writeErr,
      });
      writeErr(stderr);
      writeOut(stdout);
      process.exitCode = exitCode;
    });
}
