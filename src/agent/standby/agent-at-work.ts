import { statSync } from 'node:fs';
import { describeLockHolder, lockHolder } from '../../sys/index.ts';
import { agentFile } from './agent-file.ts';

/**
 * Who works on this node, in words: `process 4711 (nodeplane)`.
 *
 * @param lockDir the agent's --agent-lock-dir; empty: it has no lock
 * @returns undefined: nobody that can be seen from this pid namespace
 */
export function agentAtWork(lockDir: string): string | undefined {
  const lock = lockDir === '' ? undefined : statSync(agentFile(lockDir, 'lock'), { throwIfNoEntry: false });
  return lock && lockHolder(lock) ? describeLockHolder(lock) : undefined;
}
