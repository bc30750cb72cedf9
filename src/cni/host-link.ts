import { isExists, isNotFound, NodeplaneError } from '../core/index.ts';
import {
  deleteBridgeVlan,
  deleteLink,
  getLink,
  IF_OPER_UP,
  type Link,
  Netlink,
  type NetlinkRequest,
  newBridgeVlan,
  newVeth,
  setBridgePort,
  setLink,
} from '../netlink/index.ts';
import type { AttachmentKey } from './attachment-key.ts';
import { type BridgeConfig, filtersVlans } from './bridge-config.ts';
import { CNI_ERROR, CniError } from './errors.ts';
import { macOfText } from './mac.ts';
import type { PodNamespace } from './pod-namespace.ts';
import { writeSysctlIfPresent } from './sysctls.ts';

const LONGEST_CARRIER_WAIT_MS = 2000;
const DEFAULT_VLAN = 1;
/** The thread that deletes a link has the kernel's lock in some tens of microseconds. */
const EAGER_LOOKS = 20;

/** The veth pair to make. */
export interface VethSettings {
  /** Index of the bridge; undefined for none. */
  readonly master?: number;
  readonly mtu: number | undefined;
  readonly podMac: Uint8Array;
}

/**
 * Checks that the attachment has no veth pair yet, in whatever namespace its other end lies.
 *
 * @throws ERR_IPAM_DUPLICATE; CniError 104 when the link belongs to somebody else
 */
export function checkNotAttached(netlink: Netlink, { hostName, alias }: AttachmentKey): void {
  const link = getLink(netlink, { name: hostName });
  if (!link) return;
  if (isOf(link, alias)) {
    throw new NodeplaneError(
      'ERR_IPAM_DUPLICATE',
      `Attachment "${alias}" exists already, perhaps in another network namespace; send DEL first`,
      { facts: { hostName } },
    );
  }
  throw new CniError(
    CNI_ERROR.INTERFACE_EXISTS,
    `Attachment "${alias}" needs the link "${hostName}", which belongs to "${link.alias}"`,
  );
}

/**
 * Makes the veth pair in one message: the pod's end is born in the pod's namespace, the host's as a port of the bridge. The
 * alias comes in the same datagram, so that no crash leaves a link that says nothing of whose it is.
 */
export function createVeth(netlink: Netlink, key: AttachmentKey, pod: PodNamespace, settings: VethSettings): void {
  const { master, mtu, podMac } = settings;
  const { ifname } = key.owner;
  try {
    netlink.execute(
      newVeth({
        name: key.hostName,
        mac: macOfText(key.alias),
        mtu,
        master,
        up: true,
        peer: { name: ifname, mac: podMac, mtu, netnsFd: pod.fd },
      }),
      setLink({ name: key.hostName }, { alias: key.alias }),
    );
  } catch (cause) {
    if (!isExists(cause)) throw cause;
    throw new CniError(CNI_ERROR.INTERFACE_EXISTS, `Interface "${ifname}" was made by somebody else meanwhile`, {
      cause,
    });
  }
  writeSysctlIfPresent(`net/ipv6/conf/${key.hostName}/accept_ra`, 0);
}

/** The host's end; its peer index is the pod's end. Throws CniError 105 when it is gone. */
export function readHostLink(netlink: Netlink, { hostName }: AttachmentKey): Link {
  const link = getLink(netlink, { name: hostName });
  if (!link) throw new CniError(CNI_ERROR.KERNEL_REFUSED, `Link "${hostName}" vanished while it was set up; try again`);
  return link;
}

/**
 * Sets what the kernel does not take when a port is made: flags and VLANs.
 *
 * @param deletions of what may be there; they go into the same datagram
 */
export function configurePort(
  netlink: Netlink,
  { index }: Link,
  bridge: BridgeConfig,
  deletions: readonly NetlinkRequest[],
): void {
  const { hairpinMode, portIsolation, vlan, vlanTrunk, preserveDefaultVlan } = bridge;
  const flags =
    hairpinMode || portIsolation
      ? [setBridgePort(index, { hairpin: hairpinMode || undefined, isolated: portIsolation || undefined })]
      : [];
  // The one that the kernel puts every new port into, unless the bridge was told otherwise.
  const defaultVlan =
    filtersVlans(bridge) && !preserveDefaultVlan
      ? [deleteBridgeVlan({ index, first: DEFAULT_VLAN, last: DEFAULT_VLAN })]
      : [];
  const refused = netlink
    .attempt([...flags, ...defaultVlan, ...deletions])
    .find((error, i) => error && (i < flags.length || !isNotFound(error)));
  if (refused) throw refused;
  if (!filtersVlans(bridge)) return;
  netlink.execute(
    ...(vlan > 0 ? [newBridgeVlan({ index, first: vlan, last: vlan, pvid: true, untagged: true })] : []),
    ...vlanTrunk.map((span) => newBridgeVlan({ index, ...span, pvid: false, untagged: false })),
  );
}

/**
 * Waits until the bridge forwards for the port, so that the pod's first packet is not lost. The kernel reports the carrier
 * from a work queue, as a rule before we can ask.
 *
 * @throws CniError 105 after two seconds
 */
export function waitForCarrier(netlink: Netlink, { index, name }: Link): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let waitedMs = 0; getLink(netlink, { index })?.operState !== IF_OPER_UP; waitedMs++) {
    if (waitedMs >= LONGEST_CARRIER_WAIT_MS) {
      throw new CniError(
        CNI_ERROR.KERNEL_REFUSED,
        `Link "${name}" got no carrier within ${LONGEST_CARRIER_WAIT_MS} ms`,
      );
    }
    Atomics.wait(pause, 0, 0, 1);
  }
}

/** Deletes the veth pair by its host's end, if it is this attachment's. True if there was one. */
export async function deleteHostLink(netlink: Netlink, { hostName, alias }: AttachmentKey): Promise<boolean> {
  const link = getLink(netlink, { name: hostName });
  if (!link || !isOf(link, alias)) return false;
  await deletePromptly(netlink, link.index);
  return true;
}

/**
 * Deletes a link of the node; resolves when it is gone, and with it whatever made it answer: the other end, addresses,
 * routes, the place in the bridge.
 *
 * That takes the kernel less than a millisecond. Then it gives its lock back, and waits 10 to 40 ms until it can free the
 * memory before it answers the request. So another thread waits for that, and this one asks for the link, which takes the
 * same lock, until it is not there.
 */
async function deletePromptly(netlink: Netlink, index: number): Promise<void> {
  const other = Netlink.openRoute();
  let answered = false;
  const deletion = other.executeAsync(deleteLink({ index })).finally(() => {
    answered = true;
    other.close();
  });
  const refusal = deletion.catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  await Promise.race([refusal, untilGone(netlink, index, () => answered)]);
}

async function untilGone(netlink: Netlink, index: number, isAnswered: () => boolean): Promise<void> {
  for (let asked = 0; getLink(netlink, { index }) && !isAnswered(); asked++) {
    await new Promise<void>((resolve) => {
      // All threads may be busy with other links.
      if (asked < EAGER_LOOKS) setImmediate(resolve);
      else setTimeout(resolve, 1);
    });
  }
}

/** Without alias it was made by an ADD that died before it came to that; the name alone is proof enough then. */
function isOf(link: Link, alias: string): boolean {
  return link.kind === 'veth' && (link.alias === alias || link.alias === '');
}

/** The link may vanish by itself at any time, with the pod's namespace. */
export function deleteIfPresent(netlink: Netlink, index: number): void {
  try {
    netlink.execute(deleteLink({ index }));
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
