import { type BlockRequest, requestKey, requestVersion, uidOf } from './block-request.ts';
import { decideLeftovers } from './leftovers.ts';
import { keepEntries, type Memory } from './memory.ts';
import { decideOwn } from './own-blocks.ts';
import type { PoolProblem, Situation, UsableBlock } from './situation.ts';

/** Failures are remembered for so long after they may be tried again. */
const FORGET_MS = 60_000;

export interface Decision {
  readonly memory: Memory;
  /** The blocks that pods may get addresses from. */
  readonly usable: readonly UsableBlock[];
  /** What to send now, and nothing else before it is answered or given up; undefined: nothing. */
  readonly request: BlockRequest | undefined;
  /** When to decide again if nothing is heard before, in milliseconds. */
  readonly againMs: number;
  /** What people have to know. */
  readonly problems: readonly PoolProblem[];
}

/**
 * What one node does next about blocks of pod addresses, its own and those that others left behind. Pure: all it knows of
 * the past is in the memory, all it knows of the present in the situation.
 */
export function decide(s: Situation, before: Memory): Decision {
  if (isSuperseded(s, before)) {
    const message = `Another agent on node "${s.node}" has taken over its blocks of pod addresses, so that this one gives none: end one of them`;
    const problems = [{ code: 'ERR_POOL', message }] as const;
    return { memory: before, usable: [], request: undefined, againMs: s.times.tickMs, problems };
  }
  const own = decideOwn(s, before);
  const looksAround = s.now >= before.suspectsAt;
  const leftovers = looksAround ? decideLeftovers(s, before) : { requests: [], suspects: before.suspects };
  const memory = { ...recent(s, before), draining: own.draining, suspects: leftovers.suspects };
  const wanted = [...lookAtNode(s, before), ...own.requests, ...leftovers.requests];
  const waits = wanted.map((request) => waitMs(request, memory, s.now));
  const request = wanted[waits.indexOf(0)];
  // Where one thing was left behind there may be more.
  const isLeftover = request !== undefined && leftovers.requests.includes(request);
  const suspectsAt = looksAround && !isLeftover ? s.now + s.times.tickMs : before.suspectsAt;
  return {
    memory: { ...memory, suspectsAt },
    usable: own.usable,
    request,
    againMs: Math.min(s.times.tickMs, ...waits.filter((ms) => ms > 0)),
    problems: own.problems,
  };
}

/** Whether a block that was ours has another holder: a later process of the agent on this node. */
function isSuperseded({ view, session }: Situation, { held }: Memory): boolean {
  return view.own().some((block) => block.spec.holder !== session && held.has(uidOf(block)));
}

/** The memory without what is over, and with what the view shows. */
function recent({ now, view, session }: Situation, memory: Memory): Memory {
  const held = view.own().flatMap((block) => (block.spec.holder === session ? uidOf(block) : []));
  const present = new Set(held);
  return {
    ...memory,
    held: present,
    renewed: keepEntries(memory.renewed, (uid) => present.has(uid)),
    released: keepEntries(memory.released, (uid, name) => view.block(name)?.metadata.uid === uid),
    refused: keepEntries(memory.refused, (_, until) => now < until),
    awaited: keepEntries(memory.awaited, (_, { name, until }) => now < until && !view.block(name)),
    attempts: keepEntries(memory.attempts, (_, { notBefore }) => now < notBefore + FORGET_MS),
  };
}

/** Our Node is looked at from time to time, and whenever the view shows another one. */
function lookAtNode({ now, view, times }: Situation, { looked }: Memory): readonly BlockRequest[] {
  const isDue = looked === undefined || now >= looked.at + times.proofMs || looked.uid !== view.nodeUid;
  return isDue ? [{ kind: 'lookAtNode' }] : [];
}

function waitMs(request: BlockRequest, { attempts }: Memory, now: number): number {
  const attempt = attempts.get(requestKey(request));
  return !attempt || attempt.version !== requestVersion(request) ? 0 : Math.max(0, attempt.notBefore - now);
}
