import { fileURLToPath } from 'node:url';
import { workerData } from 'node:worker_threads';
import { runBuiltCode } from './built-code.ts';

// dist/cni-worker.js: a thread of the agent that serves requests of the plugin. Many begin when many pods come at once, and each
// would compile everything for itself. The one that stays when they are gone has time for that, and none of it in memory that it
// does not need.

const { stays } = workerData as { readonly stays: boolean };
runBuiltCode(fileURLToPath(import.meta.url), undefined, { compiled: !stays });
