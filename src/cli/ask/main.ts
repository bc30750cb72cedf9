import { runAsk } from './run-ask.ts';

// dist/nodeplane-ask.code, which dist/nodeplane runs for one of these commands: a fifth of the whole program's code.

runAsk();
