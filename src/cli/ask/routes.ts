import type { Command } from 'commander';
import { AGENT_ADDRESS, showRoutes } from '../../agent/index.ts';
import { writeErr, writeOut } from '../standard-output.ts';
import { readAgentAddress } from './agent-address.ts';

interface Flags {
  readonly json?: boolean;
  readonly agent: string;
}

/** `nodeplane routes`: shows how the pods of other nodes are reached. */
export function addRoutesCommand(program: Command): void {
  program
    .command('routes')
    .description(
      'show how the pods of other nodes are reached from this one, and which are not; exit status 2 if any are not',
    )
    .option('--json', 'for programs')
    .option(
      '--agent <address:port>',
      "the agent's metrics port, asked for names and reasons",
      readAgentAddress,
      AGENT_ADDRESS,
    )
    .action(async ({ json = false, agent }: Flags) => {
      const { stdout, stderr, exitCode } = await showRoutes({ json, agent });
      writeErr(stderr);
      writeOut(stdout);
      process.exitCode = exitCode;
    });
}
