import { fileURLToPath } from 'node:url';
import { startProgram } from './start-program.ts';

// dist/kube-proxy.

startProgram(fileURLToPath(import.meta.url));
