import { newProgram } from '../new-program.ts';
import { reportFailure } from '../report-failure.ts';
import { guardStandardOutput } from '../standard-output.ts';
import { ASK_COMMANDS } from './ask-commands.ts';
import { EX_USAGE } from './exit-status.ts';

// dist/nodeplane-ask.code, which dist/nodeplane runs for one of these commands: a quarter of the whole program's code.

guardStandardOutput('nodeplane');
// 1 and 2 are answers of these commands.
const program = newProgram().exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : EX_USAGE));
for (const add of Object.values(ASK_COMMANDS)) add(program);
program.parseAsync().catch((error: unknown) => reportFailure('nodeplane', error));
