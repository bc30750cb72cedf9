import { fileURLToPath } from 'node:url';
import { runBuiltCode } from './built-code.ts';

// dist/cni-worker.js: a thread of the agent that serves requests of the plugin. Many begin when many pods come at once, and each
// would compile everything for itself.

runBuiltCode(fileURLToPath(import.meta.url));
