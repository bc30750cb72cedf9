import type { Command } from 'commander';
import { addAgentCommand } from './agent.ts';
import { ASK_COMMANDS } from './ask/ask-commands.ts';
import { addCleanupCommand } from './cleanup/cleanup.ts';
import { addCniCommand } from './cni/cni-command.ts';
import { addDemoCommand } from './demo.ts';
import { addIpamCommand } from './ipam.ts';
import { addMigrationCommand } from './migration.ts';
import { newProgram } from './new-program.ts';
import { addPreflightCommand } from './preflight.ts';

/** The commands of `nodeplane`. Nothing is run before `parseAsync`. */
export function nodeplaneProgram(): Command {
  const program = newProgram();
  addAgentCommand(program);
  addCniCommand(program);
  addPreflightCommand(program);
  addCleanupCommand(program);
  addMigrationCommand(program);
  for (const add of Object.values(ASK_COMMANDS)) add(program);
  addIpamCommand(program);
  addDemoCommand(program);
  return program;
}
