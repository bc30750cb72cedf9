import { newProgram } from '../new-program.ts';
import { reportFailure } from '../report-failure.ts';
import { guardStandardOutput } from '../standard-output.ts';
import { ASK_COMMANDS } from './ask-commands.ts';

// dist/nodeplane-ask.code, which dist/nodeplane runs for one of these commands: a quarter of the whole program's code.

guardStandardOutput('nodeplane');
const program = newProgram();
for (const add of Object.values(ASK_COMMANDS)) add(program);
program.parseAsync().catch((error: unknown) => reportFailure('nodeplane', error));
