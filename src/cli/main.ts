import { Command } from 'commander';
import { addAgentCommand } from './agent.ts';
import { addCleanupCommand } from './cleanup.ts';
import { addCniCommand } from './cni/cni-command.ts';
import { addDemoCommand } from './demo.ts';
import { addDiffCommand } from './diff.ts';
import { addExplainCommand } from './explain.ts';
import { addIpamCommand } from './ipam.ts';
import { addMigrationCommand } from './migration.ts';
import { addPreflightCommand } from './preflight.ts';
import { reportFailure } from './report-failure.ts';
import { addRoutesCommand } from './routes.ts';
import { addServicesCommand } from './services.ts';
import { addStatusCommand } from './status.ts';
import { addTraceCommand } from './trace.ts';
import { VERSION } from './version.ts';

// Deleting a pod's link occupies a thread of Node's pool for tens of milliseconds, and eight are deleted at once; four would
// be there. The number is read when the pool is first used.
process.env.UV_THREADPOOL_SIZE ??= '12';

const program = new Command('nodeplane')
  .description('One agent per Kubernetes node: pod networking (CNI) and Services (a kube-proxy replacement).')
  .version(VERSION, '--version', 'print the version')
  .helpOption('-h, --help', 'print this help')
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

program.parseAsync().catch((error: unknown) => reportFailure('nodeplane', error));
