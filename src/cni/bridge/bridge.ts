import { errorText, ifPresent, isExists, isNotFound, isUnsupported, sameBytes } from '../../core/index.ts';
import type { Netlink, NetlinkRequest } from '../../netlink/index.ts';
import {
  deleteAddress,
  deleteLink,
  getLink,
  type InterfaceAddress,
  type Link,
  listAddresses,
  listLinks,
  newAddress,
  newBridge,
  setBridge,
  setLink,
} from '../../netlink/route/index.ts';
import { linkFacts } from '../../sys/index.ts';
import { withNodeLock } from '../link/node-lock.ts';
import { writeSysctlIfPresent } from '../link/sysctls.ts';
import type { UndoStack } from '../link/undo.ts';
import type { InterfaceName } from '../protocol/environment.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import { type AddressPlan, type BridgePlan, type DesiredBridge, planBridge } from './bridge-plan.ts';

/** Of IFF_*, what `LinkFacts` has. */
const FLAGS_TOLD = 0xffff;

/** A bridge and how to make it if it is missing. */
export interface BridgeSettings extends DesiredBridge {
  /** For a new bridge only. */
  readonly mac: Uint8Array;
  /** Of the pods. Undefined leaves it to the kernel. */
  readonly mtu: number | undefined;
}

/** The bridge that was read last. */
let lastRead: Link | undefined;

/**
 * Reads what `planBridge` compares with. Without the node's lock others may make the bridge meanwhile, or take it away.
 * Of a bridge that need not look at VLANs it does not ask for the link again when it is as it was the last time, as far
 * as that can be told without the lock of all links, for which each ADD would wait twice.
 *
 * @param netlink of the namespace of the calling thread
 */
export function readBridge(
  netlink: Netlink,
  { name, vlanFiltering }: { readonly name: string; readonly vlanFiltering: boolean },
): { readonly link: Link | undefined; readonly addresses: readonly InterfaceAddress[] } {
  const isKnown = !vlanFiltering && lastRead?.name === name && isUnchanged(lastRead);
  const link = isKnown ? lastRead : getLink(netlink, { name });
  lastRead = link;
  // Not there: the link has gone since it was read, as one does that an ADD made and, having failed, takes back.
  const addresses = link && ifPresent(() => listAddresses(netlink, { index: link.index }));
  return addresses ? { link, addresses } : { link: undefined, addresses: [] };
}

function isUnchanged({ name, index, flags, mtu, address }: Link): boolean {
  const now = linkFacts(name);
  return (
    now?.index === index && now.mtu === mtu && now.flags === (flags & FLAGS_TOLD) && sameBytes(now.address, address)
  );
}

/** The bridge, when there is nothing to do about it. Call it with the node's lock held, shared with others. */
export function completeBridge(netlink: Netlink, settings: BridgeSettings): Link | undefined {
  const state = readBridge(netlink, settings);
  const { add, remove, setUp, setPromiscuous, setVlanFiltering } = planBridge(state, settings);
  const isChanged = add.length + remove.length > 0 || setUp || setPromiscuous || setVlanFiltering;
  return state.link && !isChanged && !mayNeedMtu(state.link, settings) ? state.link : undefined;
}

/**
 * Makes the bridge and its addresses be as needed. Call it with the node's lock held.
 *
 * A new bridge, or an address given to one, is taken back by `undo` unless another pod was attached meanwhile: that pod
 * relies on it.
 */
export function ensureBridge(netlink: Netlink, settings: BridgeSettings, undo: UndoStack): Link {
  const { name } = settings;
  const state = readBridge(netlink, settings);
  const plan = planBridge(state, settings);
  const link = state.link ?? createBridge(netlink, settings, undo);
  const { index } = link;
  const changesAddresses = plan.add.length + plan.remove.length > 0;
  if (state.link && (changesAddresses || plan.setUp || plan.setPromiscuous || plan.setVlanFiltering))
    undo.add(`change bridge ${name}`, revertIfUnshared(netlink, link, plan));
  if (plan.setVlanFiltering) filtering(name, () => netlink.execute(setBridge(index, { vlanFiltering: true })));
  netlink.execute(
    ...addressRequests(link, plan),
    // A bridge that took its MAC from a port would change it with the next port, and pods would lose their gateway.
    ...(state.link && changesAddresses ? [setLink(index, { mac: link.address })] : []),
    // An MTU given when a bridge is made yields to that of its ports; set afterwards it stays.
    ...(!state.link && settings.mtu !== undefined ? [setLink(index, { mtu: settings.mtu })] : []),
    ...(state.link ? mtuRequests(netlink, state.link, settings) : []),
    ...(plan.setPromiscuous ? [setLink(index, { promiscuous: true })] : []),
    ...(plan.setUp ? [setLink(index, { up: true })] : []),
  );
  return link;
}

/**
 * The request by which a bridge that is there gets the least MTU of its ports and of the one to come: it drops in silence what is too
 * large for a port. Pods get another MTU than those before when that of the way to other nodes changes.
 */
function mtuRequests(netlink: Netlink, link: Link, settings: BridgeSettings): NetlinkRequest[] {
  if (!mayNeedMtu(link, settings)) return [];
  const { mtu } = settings;
  const ports = listLinks(netlink).filter(({ master }) => master === link.index);
  const least = Math.min(mtu, ...ports.map((port) => port.mtu));
  return least === link.mtu ? [] : [setLink(link.index, { mtu: least })];
}

function mayNeedMtu(link: Link, settings: BridgeSettings): settings is BridgeSettings & { readonly mtu: number } {
  const { mac, mtu } = settings;
  // A bridge that somebody else made may lead elsewhere.
  return mtu !== undefined && mtu !== link.mtu && sameBytes(link.address, mac);
}

/** The requests by which a link gets the addresses planned; lets it have IPv6 ones. */
export function addressRequests(
  { index, name }: Pick<Link, 'index' | 'name'>,
  { remove, add }: AddressPlan,
): NetlinkRequest[] {
  if (add.some(({ address }) => address.family === 'IPv6')) {
    writeSysctlIfPresent(`net/ipv6/conf/${name}/disable_ipv6`, 0);
    writeSysctlIfPresent(`net/ipv6/conf/${name}/accept_ra`, 0);
  }
  return [
    ...remove.map((cidr) => deleteAddress({ index, ...cidr })),
    ...add.map((cidr) => newAddress({ index, ...cidr })),
  ];
}

/** Makes a bridge that is not there, and switches it on. Call it with the node's lock held. Throws CniError 106, KernelError. */
export function createBridge(
  netlink: Netlink,
  { name, mac, vlanFiltering }: Pick<BridgeSettings, 'name' | 'mac' | 'vlanFiltering'>,
  undo: UndoStack,
): Link {
  undo.add(`make bridge ${name}`, () => removeUnusedBridge(netlink, name));
  if (vlanFiltering) filtering(name, () => netlink.execute(newBridge({ name, mac, vlanFiltering })));
  else netlink.execute(newBridge({ name, mac, vlanFiltering }));
  const link = getLink(netlink, { name });
  if (!link) throw new CniError(CNI_ERROR.BRIDGE_UNUSABLE, `Bridge "${name}" vanished while it was set up; try again`);
  switchOn(netlink, link);
  return link;
}

/** Has words for a kernel that has bridges, and none with VLANs. */
function filtering(name: string, ask: () => void): void {
  try {
    ask();
  } catch (cause) {
    if (!isUnsupported(cause)) throw cause;
    const message = `Bridge "${name}" cannot have VLANs ("vlan", "vlanTrunk"): this kernel lacks CONFIG_BRIDGE_VLAN_FILTERING`;
    throw new CniError(CNI_ERROR.KERNEL_REFUSED, message, { details: errorText(cause), cause });
  }
}

/** Switches a new link on that is to carry gateways. */
export function switchOn(netlink: Netlink, { index, name }: Pick<Link, 'index' | 'name'>): void {
  writeSysctlIfPresent(`net/ipv6/conf/${name}/accept_ra`, 0);
  // Looking for duplicates of its link-local address would take the first two seconds, in which the node, having no
  // usable address of that link, cannot ask for the MACs of pods that others send to.
  writeSysctlIfPresent(`net/ipv6/conf/${name}/accept_dad`, 0);
  netlink.execute(setLink(index, { up: true }));
}

/** Takes a plan's changes back, unless a pod was attached to the bridge since now. */
function revertIfUnshared(netlink: Netlink, { index }: Link, plan: BridgePlan): () => void {
  return unlessShared(netlink, index, () => {
    revertAddresses(netlink, index, plan);
    if (plan.setVlanFiltering) netlink.execute(setBridge(index, { vlanFiltering: false }));
    if (plan.setPromiscuous) netlink.execute(setLink(index, { promiscuous: false }));
    if (plan.setUp) netlink.execute(setLink(index, { up: false }));
  });
}

/** Has `revert` run, under the node's lock, unless a pod was attached to the bridge since now. */
export function unlessShared(netlink: Netlink, bridge: number, revert: () => void): () => void {
  const portsBefore = portsOf(netlink, bridge);
  return () =>
    withNodeLock(() => {
      if (![...portsOf(netlink, bridge)].some((port) => !portsBefore.has(port))) revert();
    });
}

/** Undoes a plan of which any part may have been done. Throws KernelError for what the kernel refuses. */
export function revertAddresses(netlink: Netlink, index: number, { remove, add }: AddressPlan): void {
  for (const cidr of add) executeUnlessDone(netlink, deleteAddress({ index, ...cidr }));
  for (const cidr of remove) executeUnlessDone(netlink, newAddress({ index, ...cidr }));
}

/** Of several changes in one go some may have failed, and are as they were. */
function executeUnlessDone(netlink: Netlink, request: NetlinkRequest): void {
  try {
    netlink.execute(request);
  } catch (error) {
    if (!isNotFound(error) && !isExists(error)) throw error;
  }
}

function removeUnusedBridge(netlink: Netlink, name: InterfaceName): void {
  withNodeLock(() => {
    const link = getLink(netlink, { name });
    if (link?.kind === 'bridge' && portsOf(netlink, link.index).size === 0) {
      netlink.execute(deleteLink({ index: link.index }));
    }
  });
}

function portsOf(netlink: Netlink, index: number): Set<number> {
  return new Set(
    listLinks(netlink)
      .filter(({ master }) => master === index)
      .map((link) => link.index),
  );
}
