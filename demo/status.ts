import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { claim } from './claim.ts';
import type { Cluster } from './cluster.ts';
import type { Screen } from './screen.ts';

/** Where the agent shows its page, to clients on its node. */
export const STATUS_URL = 'http://127.0.0.1:10249/status';

/** What an operator opens first: the eight lines of `nodeplane status`, and the same as a page. */
export function showStatus(screen: Screen, { node }: Cluster): void {
  screen.heading('How node-1 stands: nodeplane status');
  const text = runStatus(node.namespace.name);
  const lines = text.trimEnd().split('\n');
  for (const line of lines) screen.line(line.length > 92 ? `${line.slice(0, 91)}…` : line);
  screen.line();
  claim(/Services here +1 of 2/.test(text), 'The agent says that one of two Services has endpoints', text);
  screen.done(`the same as a page, on node-1: ${STATUS_URL}`);
}

/** Its exit status says whether there are problems, which the text says too. */
function runStatus(namespace: string): string {
  const nodeplane = join(dirname(fileURLToPath(import.meta.url)), 'nodeplane');
  try {
    return execFileSync('ip', ['netns', 'exec', namespace, nodeplane, 'status'], { encoding: 'utf8' });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    return stdout || stderr;
  }
}
