import { join } from 'node:path';
import { netnsIdentity } from '../../sys/index.ts';

/**
 * A file of the agent in the directory of its lock, named after the network namespace of this process, because what an agent
 * works on is in there: `agent-4026531840.lock`.
 */
export function agentFile(directory: string, suffix: 'lock' | 'sock' | 'trace'): string {
  const [, inode] = netnsIdentity('/proc/self/ns/net').split(':');
  return join(directory, `agent-${inode}.${suffix}`);
}
