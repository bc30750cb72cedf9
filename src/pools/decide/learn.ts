import { backOffMs } from '../../kube/index.ts';
import { blockName } from '../block-name.ts';
import { type BlockOutcome, type BlockRequest, requestKey, requestVersion, uidOf } from './block-request.ts';
import { type Attempt, type Memory, type Suspect, withEntry } from './memory.ts';
import type { Situation } from './situation.ts';

/** To be called before a request is sent: from then on it may be done, whatever is heard of it. */
export function sending(request: BlockRequest, memory: Memory): Memory {
  if (request.kind !== 'release') return memory;
  return { ...memory, released: withEntry(memory.released, uidOf(request.block), request.block.metadata.name) };
}

/** When a request was sent, and what became of it. */
export interface Answer {
  readonly sentAt: number;
  readonly outcome: BlockOutcome;
}

/** What a node remembers of a request that was answered or given up. Pure. */
export function learn(
  request: BlockRequest,
  answer: Answer,
  s: Pick<Situation, 'now' | 'times' | 'random'>,
  memory: Memory,
): Memory {
  const key = requestKey(request);
  const attempts = withEntry(memory.attempts, key, attemptAfter(request, answer.outcome, s, memory));
  return { ...memory, attempts, ...learned(request, answer, s, memory) };
}

function attemptAfter(
  request: BlockRequest,
  outcome: BlockOutcome,
  { now, times, random }: Pick<Situation, 'now' | 'times' | 'random'>,
  { attempts }: Memory,
): Attempt {
  const version = requestVersion(request);
  if (outcome.kind === 'done') {
    // The block that was claimed is waited for by its name, and the next one may be needed before.
    return { version, failures: 0, notBefore: request.kind === 'claim' ? now : now + times.settleMs };
  }
  const failures = attempts.get(requestKey(request))?.failures ?? 0;
  const askedMs = outcome.kind === 'failed' ? outcome.retryAfterMs : 0;
  return { version, failures: failures + 1, notBefore: now + backOffMs(failures, random, askedMs) };
}

function learned(
  request: BlockRequest,
  { sentAt, outcome }: Answer,
  { now, times }: Pick<Situation, 'now' | 'times'>,
  memory: Memory,
): Partial<Memory> {
  switch (request.kind) {
    case 'lookAtNode': {
      if (outcome.kind !== 'done') return {};
      const { uid } = outcome;
      return { looked: { at: sentAt, uid }, ...(uid !== undefined && { proof: { at: sentAt, uid } }) };
    }
    case 'claim': {
      const { family, cidr } = request;
      if (outcome.kind === 'beaten') return { refused: withEntry(memory.refused, cidr, now + times.claimMs) };
      if (outcome.kind === 'failed') return {};
      return { awaited: withEntry(memory.awaited, family, { name: blockName(cidr), until: now + times.claimMs }) };
    }
    case 'renew':
      return outcome.kind === 'done' ? { renewed: withEntry(memory.renewed, uidOf(request.block), sentAt) } : {};
    case 'lookForNode': {
      const { name } = request.block.metadata;
      const suspect = memory.suspects.get(name);
      if (outcome.kind !== 'done' || !suspect) return {};
      const isGone = outcome.uid !== request.block.spec.nodeUID;
      // A view that does not show a Node that is there will show it.
      const next: Suspect = isGone ? { ...suspect, goneSince: now } : { ...suspect, actAt: now + times.reclaimMs };
      return { suspects: withEntry(memory.suspects, name, next) };
    }
    default:
      return {};
  }
}
