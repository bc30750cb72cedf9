import type { Drift } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { sleepSync } from '../../sys/index.ts';
import { bridgeFindings } from './bridge-drift.ts';
import { type Finding, findingsOf } from './finding.ts';
import { hostEndDifferences } from './host-end.ts';
import { KernelLinks } from './kernel-links.ts';
import { type LinkedPod, podEndFindings } from './pod-end.ts';
import { forwardingFindings } from './settings.ts';
import type { WantedLink } from './wanted-link.ts';

export { enableForwarding } from '../link/sysctls.ts';
export { forwardedFamilies } from './settings.ts';
export { type WantedLink, wantedLink } from './wanted-link.ts';

/** A DEL deletes the link first and its records last: what is gone for so long is not just being detached. */
const GRACE_MS = 1000;
/** A bridge that is made anew has no ports, and a port that gets into it has the flags of a new one. */
const ROUNDS = 5;

/**
 * In what the interfaces of pods differ from what their ADDs made, with their bridges, and in what the sysctls do; nothing is changed.
 * Holds up the thread.
 *
 * @param host a NETLINK_ROUTE socket of the node
 * @param read the attachments that are to be there, by the notes about them; called again when one of them seems to be gone
 * @throws KernelError
 */
export function linkDrift(host: Netlink, read: () => readonly WantedLink[]): readonly Drift[] {
  let found = look(host, read());
  const gone = new Set(found.flatMap(({ isGone, drift }) => (isGone ? drift.object : [])));
  if (gone.size > 0) {
    sleepSync(GRACE_MS);
    // Others may be in the middle of a DEL by now.
    found = look(host, read()).filter(({ isGone, drift }) => !isGone || gone.has(drift.object));
  }
  return found.map(({ drift }) => drift);
}

/** Mends what can be mended of it. Arguments as above. Throws the first error of the kernel that stays. */
export function repairLinks(host: Netlink, read: () => readonly WantedLink[]): void {
  let failure: unknown;
  for (let round = 0; round < ROUNDS; round++) {
    const mends = look(host, read()).flatMap((finding) => finding.mends);
    failure = undefined;
    for (const mend of mends) {
      try {
        mend(host);
      } catch (error) {
        // The pod may have gone meanwhile: then it is not among those of the next round.
        failure ??= error;
      }
    }
    if (mends.length === 0) return;
  }
  if (failure !== undefined) throw failure;
}

function look(host: Netlink, pods: readonly WantedLink[]): Finding[] {
  if (pods.length === 0) return [];
  const kernel = new KernelLinks(host);
  const linked: LinkedPod[] = [];
  const ofPods = pods.flatMap((pod): Finding[] => {
    const link = kernel.hostLink(pod.key);
    if (!link) return [goneFinding(kernel, pod)];
    linked.push({ pod, link });
    return findingsOf(
      `link "${pod.key.hostName}" of attachment "${pod.key.alias}"`,
      hostEndDifferences(kernel, pod, link),
    );
  });
  return [...forwardingFindings(pods), ...bridgeFindings(kernel, pods), ...ofPods, ...podEndFindings(host, linked)];
}

function goneFinding(kernel: KernelLinks, { key }: WantedLink): Finding {
  const object = `link "${key.hostName}" of attachment "${key.alias}"`;
  const remedy = 'no repair makes it: delete the pod, so that it is made anew';
  const theirs = kernel.named(key.hostName) ? ['the link of that name is somebody else’s', remedy] : [remedy];
  return { drift: { object, difference: 'missing', theirs }, mends: [], isGone: true };
}
