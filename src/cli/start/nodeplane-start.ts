import { fileURLToPath } from 'node:url';
import { ASK_NAMES } from '../ask/names.ts';
import { startProgram } from './start-program.ts';

// dist/nodeplane. Whoever asks waits for the answer: those commands have code of their own, without the agent's.

const program = fileURLToPath(import.meta.url);
const asks = ASK_NAMES.some((name) => name === process.argv[2]);
startProgram(program, asks ? `${program}-ask.code` : undefined, { short: asks });
