import { type Command, Option } from 'commander';
import { AGENT_ADDRESS, showStatus } from '../../agent/index.ts';
import { writeOut } from '../standard-output.ts';
import { readAgentAddress } from './agent-address.ts';

/** Of the commands that ask the agent for its status. */
export interface StatusFlags {
  readonly output: 'text' | 'json';
  readonly address: string;
}

/** The flags that `status`, `services` and `routes` have in common. */
export function addStatusFlags(command: Command): Command {
  return command
    .addOption(
      new Option('-o, --output <form>', 'for people or for programs').choices(['text', 'json']).default('text'),
    )
    .option('--address <address:port>', "the agent's metrics port", readAgentAddress, AGENT_ADDRESS);
}

/** `nodeplane status`: the eight things to look at first, then what is wrong. */
export function addStatusCommand(program: Command): void {
  const command = program
    .command('status')
    .description(
      'show how this node stands, and last what is wrong; exit status 2 if anything is, 1 if no agent answers',
    );
  addStatusFlags(command).action(async ({ output, address }: StatusFlags) => {
    const { stdout, exitCode } = await showStatus({ address, json: output === 'json' });
    writeOut(stdout);
    process.exitCode = exitCode;
  });
}
