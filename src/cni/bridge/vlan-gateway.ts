import type { Cidr } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { deleteLink, getLink, type Link, newOwnBridgeVlan, newVlan, setLink } from '../../netlink/route/index.ts';
import { type BridgeConfig, gatewayLinkName } from '../config/bridge-config.ts';
import type { NetworkConfig } from '../config/network-config.ts';
import type { UndoStack } from '../link/undo.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import { addressRequests, readBridge, revertAddresses, switchOn, unlessShared } from './bridge.ts';
import { type AddressPlan, type BridgeState, type DesiredGateways, planAddresses } from './bridge-plan.ts';

/** The gateways of a VLAN of a bridge. */
export interface DesiredVlanGateway extends DesiredGateways, Pick<BridgeConfig, 'name' | 'vlan'> {}

/** Whether the gateways' addresses, if there are any, are not the bridge's own. */
export function isGatewayApart({ bridge }: Pick<NetworkConfig, 'bridge'>, gateways: readonly Cidr[]): boolean {
  return bridge.vlan > 0 && gateways.length > 0;
}

/**
 * Makes the link `<bridge>.<vlan>` and its addresses be as needed: pods of a VLAN cannot reach the bridge's own addresses,
 * which are in another one. Call it with the node's lock held.
 *
 * It is a VLAN link above the bridge, and goes with it. The reference plugin makes a veth pair of the same name, whose other
 * end is a port of the bridge; one that is there is used.
 *
 * @throws CniError 106 when there is something else of that name, or an address is in the way
 */
export function ensureVlanGateway(netlink: Netlink, bridge: Link, desired: DesiredVlanGateway, undo: UndoStack): Link {
  const state = readGateway(netlink, desired);
  const plan = planVlanGateway(state, bridge, desired);
  const link = state.link ?? createVlanLink(netlink, bridge, desired, undo);
  if (state.link && plan.add.length + plan.remove.length > 0) {
    const revert = () => revertAddresses(netlink, link.index, plan);
    undo.add(`change addresses of ${link.name}`, unlessShared(netlink, bridge.index, revert));
  }
  netlink.execute(
    ...addressRequests(link, plan),
    ...(link.kind === 'vlan' ? [newOwnBridgeVlan(bridge.index, desired.vlan)] : []),
    ...(state.link && !state.link.up ? [setLink(link.index, { up: true })] : []),
  );
  return link;
}

/** Reads what `planVlanGateway` compares with. */
export function readGateway(
  netlink: Netlink,
  bridge: Pick<BridgeConfig, 'name' | 'vlan'>,
): ReturnType<typeof readBridge> {
  return readBridge(netlink, { name: gatewayLinkName(bridge), vlanFiltering: true });
}

/**
 * Compares the link of that name and its addresses with what is needed.
 *
 * @param bridge undefined when it is not there yet
 * @throws CniError 106 when it is something else, or an address is in the way and may not be replaced
 */
export function planVlanGateway(
  { link, addresses }: Pick<BridgeState, 'addresses'> & { readonly link: Link | undefined },
  bridge: Link | undefined,
  desired: DesiredVlanGateway,
): AddressPlan {
  const name = gatewayLinkName(desired);
  const isOurs = link?.kind === 'vlan' && link.peerIndex === bridge?.index && link.vlanId === desired.vlan;
  if (link && !isOurs && link.kind !== 'veth') {
    throw new CniError(
      CNI_ERROR.BRIDGE_UNUSABLE,
      `Link "${name}" exists and is not VLAN ${desired.vlan} of the bridge "${desired.name}"; remove it or choose another bridge by the key "bridge"`,
    );
  }
  return planAddresses('Link', name, addresses, desired);
}

function createVlanLink(netlink: Netlink, bridge: Link, desired: DesiredVlanGateway, undo: UndoStack): Link {
  const name = gatewayLinkName(desired);
  const remove = () => {
    const made = getLink(netlink, { name });
    if (made?.kind === 'vlan') netlink.execute(deleteLink({ index: made.index }));
  };
  undo.add(`make the gateway ${name}`, unlessShared(netlink, bridge.index, remove));
  netlink.execute(
    // A bridge that took its MAC from a port would change it with the next port, and this link would follow.
    setLink(bridge.index, { mac: bridge.address }),
    newVlan({ name, link: bridge.index, id: desired.vlan }),
  );
  const link = getLink(netlink, { name });
  if (!link) throw new CniError(CNI_ERROR.BRIDGE_UNUSABLE, `Link "${name}" vanished while it was set up; try again`);
  switchOn(netlink, link);
  return link;
}
