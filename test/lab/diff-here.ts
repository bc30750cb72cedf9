import { showDiff } from '../../src/agent/index.ts';
import { NODE_PATHS } from '../../src/core/index.ts';
import { inNetns } from '../../src/sys/index.ts';
import type { TestNamespace } from './namespace.ts';

/** `nodeplane diff -o json`, asked within this process: where many ask, starting a program for each takes the longest. */
export async function diffHere(namespace: TestNamespace, { repair = false } = {}) {
  const options = { directory: NODE_PATHS.runDir, repair, json: true, progress: () => {} };
  // Which agent is asked is decided by the namespace it is called in.
  const { shown } = inNetns(namespace.path, () => ({ shown: showDiff(options) }));
  return shown;
}
