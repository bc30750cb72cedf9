import { existsSync } from 'node:fs';
import { holderOf } from '../../sys/index.ts';
import { agentFile } from './agent-file.ts';

/**
 * Who works on this node, in words: `process 4711 (nodeplane)`. The lock itself is asked: /proc/locks has none of another pid
 * namespace, such as that of an agent in a container, and its numbers of files are those of other file systems' files as well.
 *
 * @param lockDir the agent's --agent-lock-dir; empty: it has no lock
 * @returns undefined: nobody
 */
export function agentAtWork(lockDir: string): string | undefined {
  const path = lockDir === '' ? '' : agentFile(lockDir, 'lock');
  return existsSync(path) ? holderOf(path) : undefined;
}
