import { ifPresent, isExists, isNotFound, NodeplaneError, sameBytes } from '../../core/index.ts';
import { Netlink, type NetlinkRequest } from '../../netlink/index.ts';
import {
  deleteBridgeVlan,
  deleteLink,
  getLink,
  type Link,
  newBridgeVlan,
  newVeth,
  setBridgePort,
  setLink,
} from '../../netlink/route/index.ts';
import { IF_OPER_UP } from '../../netlink/uapi/index.ts';
import { failpoint, hasSysctls, linkFacts, sleepSync } from '../../sys/index.ts';
import { type BridgeConfig, filtersVlans } from '../config/bridge-config.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import { macOfText } from '../protocol/mac.ts';
import type { PodNamespace } from './pod-namespace.ts';
import { writeSysctlIfPresent } from './sysctls.ts';
import type { UndoStack } from './undo.ts';

const LONGEST_CARRIER_WAIT_MS = 2000;
const LONGEST_PAUSE_MS = 16;
const DEFAULT_VLAN = 1;
/** The thread that deletes a link has the kernel's lock in some tens of microseconds. */
const EAGER_LOOKS = 20;

/** For whom a veth pair is made, and who takes it back. */
export interface VethOwner {
  readonly key: AttachmentKey;
  readonly pod: PodNamespace;
  readonly undo: UndoStack;
}

/** The veth pair to make. */
export interface VethSettings {
  readonly mtu: number | undefined;
  readonly podMac: Uint8Array;
  /** What the host's end becomes a port of; undefined for nothing. */
  readonly bridge?: { readonly index: number; readonly config: BridgeConfig } | undefined;
  /** Of what may be there. */
  readonly deletions?: readonly NetlinkRequest[];
}

/** The host's end of a veth pair; its peer index is the pod's end. */
export type HostLink = Pick<Link, 'index' | 'name' | 'address' | 'mtu' | 'peerIndex'>;

/**
 * Checks that the attachment has no veth pair yet, in whatever namespace its other end lies.
 *
 * @throws ERR_IPAM_DUPLICATE; CniError 104 when the link belongs to somebody else
 */
export function checkNotAttached(netlink: Netlink, key: AttachmentKey): void {
  const { hostName, alias } = key;
  // A link that has no sysctls is found when ours is made.
  const link = hasSysctls(hostName) ? getLink(netlink, { name: hostName }) : undefined;
  if (!link) return;
  if (isOf(link, key)) {
    throw new NodeplaneError(
      'ERR_IPAM_DUPLICATE',
      `Attachment "${alias}" exists already, perhaps in another network namespace; send DEL first`,
      { facts: { hostName } },
    );
  }
  throw new CniError(
    CNI_ERROR.INTERFACE_EXISTS,
    `Attachment "${alias}" needs the link "${hostName}", which belongs to ${link.alias ? `"${link.alias}"` : 'somebody else'}`,
  );
}

/**
 * Makes the veth pair: the pod's end is born in the pod's namespace, the host's as a port of the bridge. What the kernel
 * does not take in the message that makes a link comes behind it, by the number of what was made: by its name it would reach a
 * link that somebody else made meanwhile. Of a crash between the two the MAC tells whose the link is.
 *
 * Each message takes the lock that all changes of links need, and so would each question: where many pods come at once that is
 * what an ADD waits for. So there are two, and what they made is asked for without.
 *
 * Two things make the kernel wait, with that lock, until no processor uses what it takes away; both are avoided. It makes queues
 * for every processor and then takes all but one away, unless it is told their number. And it takes a link that is asked for
 * out of service while it is on and has no carrier: so nobody asks until the pod's end is on.
 *
 * @throws CniError 104 when a link of one of the names is there, 105 when the new one vanished; KernelError
 */
export function createVeth(netlink: Netlink, { key, pod, undo }: VethOwner, settings: VethSettings): HostLink {
  const { bridge, mtu, podMac, deletions = [] } = settings;
  const { ifname } = key.owner;
  const name = key.hostName;
  const mac = hostMac(key);
  const peerSpec = { name: ifname, mac: podMac, mtu, netnsFd: pod.fd };
  let isRefused = false;
  undo.add('make the veth pair', async () => {
    // What has its name then is not ours, or we would not have been refused.
    if (!isRefused) await deleteHostLink(netlink, key);
  });
  const [refusal] = netlink.attempt([newVeth({ name, mac, mtu, master: bridge?.index, queues: 1, peer: peerSpec })]);
  isRefused = refusal !== undefined;
  if (refusal && isExists(refusal)) {
    const taken = hasSysctls(name) ? `Link "${name}" of the node` : `Interface "${ifname}" of the pod`;
    throw new CniError(CNI_ERROR.INTERFACE_EXISTS, `${taken} was made by somebody else meanwhile`, { cause: refusal });
  }
  if (refusal) throw refusal;
  failpoint('veth-made');
  const made = linkFacts(name);
  const peer = pod.run(() => linkFacts(ifname));
  if (!sameBytes(made?.address, mac) || !sameBytes(peer?.address, podMac)) throw vanished(name);
  const { index } = made!;
  const refusals = netlink.attempt([switchedOn(index, key, bridge?.config), ...deletions]);
  const unexpected = refusals.find((error, i) => error && !(i > 0 && isNotFound(error)));
  if (unexpected) throw refusals[0] && isNotFound(refusals[0]) ? vanished(name) : unexpected;
  const hostLink = { index, name, address: mac, mtu: made!.mtu, peerIndex: peer!.index };
  writeSysctlIfPresent(`net/ipv6/conf/${name}/accept_ra`, 0);
  if (bridge) setPortVlans(netlink, hostLink, bridge.config);
  return hostLink;
}

function vanished(name: string): CniError {
  return new CniError(CNI_ERROR.KERNEL_REFUSED, `Link "${name}" vanished while it was set up; try again`);
}

/** The request that says whose the host's end is, and switches it on: nothing passes before the pod's end is on too. */
function switchedOn(index: number, { alias }: AttachmentKey, bridge: BridgeConfig | undefined): NetlinkRequest {
  const change = { alias, up: true };
  if (!bridge?.hairpinMode && !bridge?.portIsolation) return setLink(index, change);
  const { hairpinMode, portIsolation } = bridge;
  return setBridgePort(index, { hairpin: hairpinMode || undefined, isolated: portIsolation || undefined }, change);
}

/** Makes a pod's port a member of its VLANs. Throws KernelError. */
export function setPortVlans(netlink: Netlink, { index }: Pick<HostLink, 'index'>, bridge: BridgeConfig): void {
  if (!filtersVlans(bridge)) return;
  const { vlan, vlanTrunk, preserveDefaultVlan } = bridge;
  // The one that the kernel puts every new port into, unless the bridge was told otherwise.
  const byDefault = preserveDefaultVlan ? [] : [deleteBridgeVlan({ index, first: DEFAULT_VLAN, last: DEFAULT_VLAN })];
  const refusal = netlink.attempt(byDefault).find((error) => error && !isNotFound(error));
  if (refusal) throw refusal;
  netlink.execute(
    ...(vlan > 0 ? [newBridgeVlan({ index, first: vlan, last: vlan, pvid: true, untagged: true })] : []),
    ...vlanTrunk.map((span) => newBridgeVlan({ index, ...span, pvid: false, untagged: false })),
  );
}

/**
 * Waits until the bridge forwards for the port, so that the pod's first packet is not lost. The kernel reports the carrier
 * from a work queue, as a rule before we can ask; where many links are made at once it is up to a second late. It does so
 * with the lock that our question takes too: who is told IF_OPER_UP is told after the bridge.
 *
 * @param sleep holds up the thread
 * @throws CniError 105 after two seconds, besides those in which the kernel did not answer
 */
export function waitForCarrier(
  netlink: Netlink,
  { index, name }: Pick<Link, 'index' | 'name'>,
  sleep = sleepSync,
): void {
  let waitedMs = 0;
  for (let pauseMs = 1; getLink(netlink, { index })?.operState !== IF_OPER_UP; pauseMs = nextPause(pauseMs)) {
    if (waitedMs >= LONGEST_CARRIER_WAIT_MS) {
      throw new CniError(
        CNI_ERROR.KERNEL_REFUSED,
        `Link "${name}" got no carrier within ${LONGEST_CARRIER_WAIT_MS} ms`,
      );
    }
    sleep(pauseMs);
    waitedMs += pauseMs;
  }
}

/** Each question delays what is waited for, because both take the same lock. */
function nextPause(pauseMs: number): number {
  return Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
}

/** The host's end of an attachment's veth pair, if it is there and this attachment's. */
export function findHostLink(netlink: Netlink, key: AttachmentKey): Link | undefined {
  const link = getLink(netlink, { name: key.hostName });
  return link && isOf(link, key) ? link : undefined;
}

/** Whether the node has a link, by its name. */
export function linkFinder(netlink: Netlink): (name: string) => boolean {
  return (name) => getLink(netlink, { name }) !== undefined;
}

/** Deletes the veth pair by its host's end, if it is this attachment's. True if there was one. */
export async function deleteHostLink(netlink: Netlink, key: AttachmentKey): Promise<boolean> {
  const link = findHostLink(netlink, key);
  if (!link) return false;
  await deletePromptly(netlink, link);
  return true;
}

/**
 * Deletes a link of the node; resolves when it is gone, and with it whatever made it answer: the other end, addresses,
 * routes, the place in the bridge.
 *
 * That takes the kernel less than a millisecond. Then it gives its lock back, and waits 10 to 40 ms until it can free the
 * memory before it answers the request. So another thread waits for that, and this one looks for the link's sysctls, which takes
 * no lock; when they are gone it asks for the link, which takes the same lock, until it is not there.
 */
async function deletePromptly(netlink: Netlink, { index, name }: Link): Promise<void> {
  const other = Netlink.openRoute();
  let answered = false;
  const deletion = other.executeAsync(deleteLink({ index })).finally(() => {
    answered = true;
    other.close();
  });
  const refusal = deletion.catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  await Promise.race([
    refusal,
    untilGone(() => (hasSysctls(name) || getLink(netlink, { index }) !== undefined) && !answered),
  ]);
}

async function untilGone(isThere: () => boolean): Promise<void> {
  let pauseMs = 1;
  for (let asked = 0; isThere(); asked++) {
    // All threads may be busy with other links.
    const isEager = asked < EAGER_LOOKS;
    await new Promise<void>((resolve) => {
      if (isEager) setImmediate(resolve);
      else setTimeout(resolve, pauseMs);
    });
    if (!isEager) pauseMs = nextPause(pauseMs);
  }
}

/** Without alias it was made by an ADD that died before it came to that; then its MAC is the proof. */
export function isOf({ kind, alias, address }: Link, key: AttachmentKey): boolean {
  return kind === 'veth' && (alias === key.alias || (alias === '' && sameBytes(address, hostMac(key))));
}

/** The MAC with which the host's end is made. */
export function hostMac({ alias }: AttachmentKey): Uint8Array {
  return macOfText(alias);
}

/**
 * The link may vanish by itself at any time, with the pod's namespace.
 *
 * @param netnsId the number of the namespace it lies in, if that is not the one the conversation is about
 */
export function deleteIfPresent(netlink: Netlink, index: number, netnsId?: number): void {
  ifPresent(() => netlink.execute(deleteLink({ index, netnsId })));
}
