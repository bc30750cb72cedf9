import { Command } from 'commander';
import { addAgentCommand } from './agent.ts';
import { addCleanupCommand } from './cleanup.ts';
import { addCniCommand } from './cni-command.ts';
import { addDemoCommand } from './demo.ts';
import { reportFailure } from './report-failure.ts';
import { VERSION } from './version.ts';

const program = new Command('nodeplane')
  .description('One agent per Kubernetes node: pod networking (CNI) and Services (a kube-proxy replacement).')
  .version(VERSION, '--version', 'print the version')
  .helpOption('-h, --help', 'print this help')
  .showHelpAfterError('(run with --help for the flags)')
  // What follows a command's name is the command's.
  .enablePositionalOptions();

addAgentCommand(program);
addCniCommand(program);
addCleanupCommand(program);
addDemoCommand(program);

program.parseAsync().catch((error: unknown) => reportFailure('nodeplane', error));
