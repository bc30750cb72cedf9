import { existsSync } from 'node:fs';
import { holderOf } from '../../sys/index.ts';
import { askControl } from '../control/ask-control.ts';
import type { ControlPages } from '../control/control-server.ts';
import { agentFile } from './agent-file.ts';

const PAGE = '/writes';
const ANSWER_WITHIN_MS = 20_000;

/** What an agent writes, and writes again when somebody removes it. */
export interface AgentWrites {
  /** Rules of this mode. */
  readonly mode: string;
  /** Whether it has --routes. */
  readonly routes: boolean;
}

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

/** `GET /writes` of the control socket. */
export function writesPage(writes: AgentWrites): ControlPages {
  const headers = { 'Content-Type': 'application/json' };
  return { [`GET ${PAGE}`]: () => ({ status: 200, headers, body: `${JSON.stringify(writes)}\n` }) };
}

/**
 * What the agent that works on this node writes.
 *
 * @param lockDir as for `agentAtWork`
 * @returns undefined: nobody says, such as an older agent
 */
export async function agentWrites(lockDir: string): Promise<AgentWrites | undefined> {
  const socketPath = agentFile(lockDir, 'sock');
  try {
    const page = { socketPath, method: 'GET', path: PAGE, timeoutMs: ANSWER_WITHIN_MS } as const;
    return JSON.parse(await askControl(page)) as AgentWrites;
  } catch {
    return undefined;
  }
}
