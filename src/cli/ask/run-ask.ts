import { CommanderError } from 'commander';
import { newProgram } from '../new-program.ts';
import { reportFailure } from '../report-failure.ts';
import { guardStandardOutput } from '../standard-output.ts';
import { ASK_COMMANDS, type ReadOffline } from './ask-commands.ts';
import { EX_IOERR, EX_USAGE } from './exit-status.ts';

/**
 * Runs one of the commands that ask, with exit statuses that are none of their answers (1 and 2) where there is none.
 *
 * @param readOffline for `explain --manifests`. @default it is refused
 */
export function runAsk(readOffline?: ReadOffline): void {
  guardStandardOutput('nodeplane', EX_IOERR);
  const program = newProgram().exitOverride((end) => {
    throw end;
  });
  for (const add of Object.values(ASK_COMMANDS)) add(program, readOffline);
  program.parseAsync().catch((error: unknown) => {
    if (!(error instanceof CommanderError)) return reportFailure('nodeplane', error);
    // It has said what there is to say. An end at once would hide that it could not be written.
    process.exitCode ??= error.exitCode === 0 ? 0 : EX_USAGE;
  });
}
