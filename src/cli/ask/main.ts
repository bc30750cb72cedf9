import { CommanderError } from 'commander';
import { newProgram } from '../new-program.ts';
import { reportFailure } from '../report-failure.ts';
import { guardStandardOutput } from '../standard-output.ts';
import { ASK_COMMANDS } from './ask-commands.ts';
import { EX_IOERR, EX_USAGE } from './exit-status.ts';

// dist/nodeplane-ask.code, which dist/nodeplane runs for one of these commands: a quarter of the whole program's code.

// 1 and 2 are answers of these commands.
guardStandardOutput('nodeplane', EX_IOERR);
const program = newProgram().exitOverride((end) => {
  throw end;
});
for (const add of Object.values(ASK_COMMANDS)) add(program);
program.parseAsync().catch((error: unknown) => {
  if (!(error instanceof CommanderError)) return reportFailure('nodeplane', error);
  // It has said what there is to say. An end at once would hide that it could not be written.
  process.exitCode ??= error.exitCode === 0 ? 0 : EX_USAGE;
});
