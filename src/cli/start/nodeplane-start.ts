import { fileURLToPath } from 'node:url';
import { isAsked } from '../ask/names.ts';
import { startProgram } from './start-program.ts';

// dist/nodeplane. Whoever asks waits for the answer: those commands have code of their own, without the agent's. Without an agent,
// `explain --manifests` plans itself, and needs that.

const program = fileURLToPath(import.meta.url);
const asks = isAsked(process.argv) && !process.argv.some((word) => /^--manifests(=|$)/.test(word));
startProgram(program, asks ? `${program}-ask.code` : undefined, { short: asks });
