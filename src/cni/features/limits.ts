import type { Drift, Steps } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { getLink } from '../../netlink/route/index.ts';
import { type LimitedPod, limitAgain, limitProblems } from './bandwidth.ts';
import type { WantedAttachment } from './wanted-attachment.ts';

/**
 * In what the limits of pods' traffic differ from those that their ADDs made; nothing is changed. Reads links and queueing
 * disciplines in the calling thread, one pod a step.
 *
 * @param host a NETLINK_ROUTE socket of the node
 * @throws KernelError
 */
export function* limitDrift(host: Netlink, attachments: readonly WantedAttachment[]): Steps<readonly Drift[]> {
  const drift: Drift[] = [];
  for (const attachment of attachments) {
    yield;
    const pod = limitedPod(host, attachment);
    const theirs = pod ? limitProblems(pod) : [];
    const object = `limits of attachment "${attachment.key.alias}"`;
    if (theirs.length > 0) drift.push({ object, difference: 'changed', theirs });
  }
  return drift;
}

/** Makes the limits anew that are not as they should be. Arguments and errors as above, and those of ADD. */
export function* repairLimits(host: Netlink, attachments: readonly WantedAttachment[]): Steps<void> {
  for (const attachment of attachments) {
    yield;
    const pod = limitedPod(host, attachment);
    if (!pod || limitProblems(pod).length === 0) continue;
    try {
      limitAgain(pod);
    } catch (error) {
      // Its DEL, by another thread or process, has begun meanwhile.
      if (limitedPod(host, attachment)) throw error;
    }
  }
}

/** Undefined: it has no limits, or its link is gone, which a DEL removes first. */
function limitedPod(host: Netlink, { key, features }: WantedAttachment): LimitedPod | undefined {
  if (!features.bandwidth) return undefined;
  const hostLink = getLink(host, { name: key.hostName });
  return hostLink?.alias === key.alias ? { key, features, host, hostLink } : undefined;
}
