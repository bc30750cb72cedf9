import type { Drift } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { sleepSync } from '../../sys/index.ts';
import { bridgeFindings } from './bridge-drift.ts';
import { type Finding, findingsOf } from './finding.ts';
import { hostEndDifferences, wayDifferences } from './host-end.ts';
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

/** What differs on the node's side, without looking into the pods. */
export interface NodeSideDrift {
  /** Of bridges and gateways, which are of many pods, and of the ways to routed pods where several are gone. */
  readonly shared: readonly Drift[];
  /** Of the ends of single pods; not of those whose link is gone, as it is in the middle of a DEL. */
  readonly ofPods: readonly Drift[];
}

/** As `linkDrift`, of the node's side alone and without forwarding: some listings of the kernel. Arguments and errors as above. */
export function nodeSideDrift(host: Netlink, read: () => readonly WantedLink[]): NodeSideDrift {
  const { shared, ofPods } = lookAtNode(host, read());
  const drifts = (findings: readonly Finding[]) => findings.filter(({ isGone }) => !isGone).map(({ drift }) => drift);
  return { shared: drifts(shared), ofPods: drifts(ofPods) };
}

/** Mends what can be mended of it. Arguments as above. Throws the first error of the kernel that stays. */
export function repairLinks(host: Netlink, read: () => readonly WantedLink[]): void {
  repair(host, () => look(host, read()));
}

/**
 * Mends bridges and gateways, and the ways to routed pods where those of several are gone; the ends of pods only where
 * there was no bridge, which took them out of it. What is done to a single pod may be meant. Arguments and errors as
 * above.
 */
export function repairShared(host: Netlink, read: () => readonly WantedLink[]): void {
  const isMissing = lookAtNode(host, read()).shared.some(({ drift }) => drift.difference === 'missing');
  repair(host, () => {
    const { shared, ofPods } = lookAtNode(host, read());
    return isMissing ? [...shared, ...ofPods] : shared;
  });
}

function repair(host: Netlink, find: () => readonly Finding[]): void {
  let failure: unknown;
  for (let round = 0; round < ROUNDS; round++) {
    const mends = find().flatMap((finding) => finding.mends);
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
  const { shared, ofPods, linked } = lookAtNode(host, pods);
  return [...forwardingFindings(pods), ...shared, ...ofPods, ...podEndFindings(host, linked)];
}

function lookAtNode(host: Netlink, pods: readonly WantedLink[]) {
  if (pods.length === 0) return { shared: [], ofPods: [], linked: [] };
  const kernel = new KernelLinks(host);
  const linked: LinkedPod[] = [];
  const gone: Finding[] = [];
  for (const pod of pods) {
    const link = kernel.hostLink(pod.key);
    if (link) linked.push({ pod, link });
    else gone.push(goneFinding(kernel, pod));
  }
  const ends = linked.map(({ pod, link }) => ({
    object: `link "${pod.key.hostName}" of attachment "${pod.key.alias}"`,
    own: hostEndDifferences(kernel, pod, link),
    way: wayDifferences(kernel, pod, link),
    up: link.up,
  }));
  // A link that is down has taken its way along.
  const lost = ends.filter(({ way, up }) => up && way.length > 0);
  // `ip route flush`, or IPv6 switched off and on again, takes those of all pods of the node.
  const sharedWays = new Set(lost.length > 1 ? lost : []);
  return {
    shared: [...bridgeFindings(kernel, pods), ...[...sharedWays].flatMap(({ object, way }) => findingsOf(object, way))],
    ofPods: [
      ...gone,
      ...ends.flatMap((end) => findingsOf(end.object, sharedWays.has(end) ? end.own : [...end.own, ...end.way])),
    ],
    linked,
  };
}

function goneFinding(kernel: KernelLinks, { key }: WantedLink): Finding {
  const object = `link "${key.hostName}" of attachment "${key.alias}"`;
  const remedy = 'no repair makes it: delete the pod, so that it is made anew';
  const theirs = kernel.named(key.hostName) ? ['the link of that name is somebody else’s', remedy] : [remedy];
  return { drift: { object, difference: 'missing', theirs }, mends: [], isGone: true };
}
