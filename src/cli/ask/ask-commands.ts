import type { Command } from 'commander';
import { addDiffCommand } from './diff.ts';
import { addExplainCommand, type ReadOffline } from './explain.ts';
import type { ASK_NAMES } from './names.ts';
import { addRoutesCommand } from './routes.ts';
import { addServicesCommand } from './services.ts';
import { addStatusCommand } from './status.ts';
import { addTraceCommand } from './trace.ts';

export type { ReadOffline };

/** What adds each of them to a program. */
export const ASK_COMMANDS: Readonly<
  Record<(typeof ASK_NAMES)[number], (program: Command, readOffline?: ReadOffline) => void>
> = {
  status: addStatusCommand,
  services: addServicesCommand,
  explain: addExplainCommand,
  routes: addRoutesCommand,
  trace: addTraceCommand,
  diff: addDiffCommand,
};
