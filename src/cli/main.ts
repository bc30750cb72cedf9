import { readKnowledge } from '../agent/index.ts';
import { isAsked } from './ask/names.ts';
import { runAsk } from './ask/run-ask.ts';
import { nodeplaneProgram } from './program.ts';
import { reportFailure } from './report-failure.ts';
import { guardStandardOutput } from './standard-output.ts';

// Deleting a pod's link occupies a thread of Node's pool for tens of milliseconds, and eight are deleted at once; four would
// be there. The number is read when the pool is first used.
process.env.UV_THREADPOOL_SIZE ??= '12';

// Of those that ask, `explain --manifests` alone comes here: see nodeplane-start.ts.
if (isAsked(process.argv)) runAsk(readKnowledge);
else {
  guardStandardOutput('nodeplane');
  nodeplaneProgram()
    .parseAsync()
    .catch((error: unknown) => reportFailure('nodeplane', error));
}
