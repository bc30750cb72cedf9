import { type Command, Option } from 'commander';
import { showRoutes } from '../../agent/index.ts';
import { writeErr, writeOut } from '../standard-output.ts';
import { readAgentAddress } from './agent-address.ts';
import { addStatusFlags, type StatusFlags } from './status.ts';

interface Flags extends StatusFlags {
  /** What `--output json` and `--address` were called in 0.1.0. */
  readonly json?: boolean;
  readonly agent?: string;
}

/** `nodeplane routes`: shows how the pods of other nodes are reached. */
export function addRoutesCommand(program: Command): void {
  const command = program
    .command('routes')
    .description(
      'show how the pods of other nodes are reached from this one, and which are not; exit status 2 if any are not',
    )
    .addOption(new Option('--json').hideHelp())
    .addOption(new Option('--agent <address:port>').argParser(readAgentAddress).hideHelp());
  addStatusFlags(command).action(async ({ output, address, json = output === 'json', agent = address }: Flags) => {
    const { stdout, stderr, exitCode } = await showRoutes({ json, agent });
    writeErr(stderr);
    writeOut(stdout);
    process.exitCode = exitCode;
  });
}
