import type { PodCIDRBlock } from '../../kube/index.ts';
import { isConfirmed } from '../block-view.ts';
import { type BlockRequest, uidOf, versionOf } from './block-request.ts';
import type { Memory, Suspect } from './memory.ts';
import { isOurs } from './own-block.ts';
import type { Situation } from './situation.ts';

/**
 * Of all nodes, so many look after a block that was left behind before the first has finished. Each waits a random time,
 * which is the longer the more nodes there are, so that the work does not grow with the cluster.
 */
const EXPECTED_LOOKERS = 8;

export interface LeftoverDecision {
  readonly requests: readonly BlockRequest[];
  readonly suspects: ReadonlyMap<string, Suspect>;
}

/**
 * What this node does about blocks that others have left behind. Pure.
 *
 * - A pending block, or one to be deleted, that stays as it is: it is deleted. The version makes sure that its node did not
 *   go on meanwhile.
 * - A confirmed block whose Node is not there. A look at the server proves that the Node of this UID is gone, which is for
 *   ever; from then on the block has to stay unchanged for the whole grace time. A node that is alive renews it.
 *
 * No lease says who does it: the compare-and-swap lets one do it, and others hear of it by their watch.
 */
export function decideLeftovers(s: Situation, memory: Memory): LeftoverDecision {
  const requests: BlockRequest[] = [];
  const suspects = new Map<string, Suspect>();
  for (const block of s.view.suspicious()) {
    if (block.spec.node === s.node && isCaredFor(block, s, memory)) continue;
    const suspect = suspectOf(block, s, memory);
    suspects.set(block.metadata.name, suspect);
    const request = requestFor(block, suspect, s, memory);
    if (request) requests.push(request);
  }
  return { requests, suspects };
}

/** Whether the block carries our name, and is handled as our own. */
function isCaredFor(block: PodCIDRBlock, s: Situation, memory: Memory): boolean {
  return block.spec.state === 'releasing' || isOurs(block, memory, s.use(block.spec.cidr).used);
}

function suspectOf(block: PodCIDRBlock, s: Situation, { suspects }: Memory): Suspect {
  const version = versionOf(block);
  const known = suspects.get(block.metadata.name);
  if (known?.version === version) return known;
  const { reclaimMs, unfinishedMs } = s.times;
  const graceMs = isConfirmed(block.spec) ? reclaimMs : unfinishedMs;
  const spreadMs = (s.random() * s.view.owners * graceMs) / EXPECTED_LOOKERS;
  // A Node may be deleted and registered again before anybody has to look.
  const actAt = s.now + spreadMs + (isConfirmed(block.spec) ? 0 : graceMs);
  return { version, actAt, goneSince: undefined };
}

function requestFor(block: PodCIDRBlock, suspect: Suspect, s: Situation, memory: Memory): BlockRequest | undefined {
  // What we released ourselves needs no second look.
  const isFinished = block.spec.state === 'releasing' && memory.released.has(uidOf(block));
  if (!isFinished && s.now < suspect.actAt) return undefined;
  if (!isConfirmed(block.spec)) return { kind: 'remove', block };
  if (suspect.goneSince === undefined) return { kind: 'lookForNode', block };
  return s.now >= suspect.goneSince + s.times.reclaimMs ? { kind: 'release', block } : undefined;
}
