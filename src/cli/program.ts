import { Command } from 'commander';
import { addAgentCommand } from './agent.ts';
import { addDiffCommand } from './ask/diff.ts';
import { addExplainCommand } from './ask/explain.ts';
import { addRoutesCommand } from './ask/routes.ts';
import { addServicesCommand } from './ask/services.ts';
import { addStatusCommand } from './ask/status.ts';
import { addTraceCommand } from './ask/trace.ts';
import { addCleanupCommand } from './cleanup/cleanup.ts';
import { addCniCommand } from './cni/cni-command.ts';
import { addDemoCommand } from './demo.ts';
import { addIpamCommand } from './ipam.ts';
import { addMigrationCommand } from './migration.ts';
import { addPreflightCommand } from './preflight.ts';
import { writeErr, writeOut } from './standard-output.ts';
import { VERSION } from './version.ts';

/** The commands of `nodeplane`. Nothing is run before `parseAsync`. */
export function nodeplaneProgram(): Command {
  const program = new Command('nodeplane')
    .description('One agent per Kubernetes node: pod networking (CNI) and Services (a kube-proxy replacement).')
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .configureOutput({ writeOut, writeErr })
    .showHelpAfterError('(run with --help for the flags)')
    // What follows a command's name is the command's.
    .enablePositionalOptions();
  addAgentCommand(program);
  addCniCommand(program);
  addPreflightCommand(program);
  addCleanupCommand(program);
  addMigrationCommand(program);
  addStatusCommand(program);
  addServicesCommand(program);
  addExplainCommand(program);
  addRoutesCommand(program);
  addTraceCommand(program);
  addIpamCommand(program);
  addDiffCommand(program);
  addDemoCommand(program);
  return program;
}
