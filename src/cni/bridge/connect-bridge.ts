import { hostname } from 'node:os';
import type { Cidr, IpAddress } from '../../core/index.ts';
import type { Netlink, NetlinkRequest } from '../../netlink/index.ts';
import { deleteNeighbour, type Link } from '../../netlink/route/index.ts';
import { failpoint, linkFacts } from '../../sys/index.ts';
import { filtersVlans } from '../config/bridge-config.ts';
import type { NetworkConfig } from '../config/network-config.ts';
import type { Addressing } from '../link/addressing.ts';
import type { Attaching, Connection } from '../link/attaching.ts';
import { createVeth } from '../link/host-link.ts';
import { withNodeLock } from '../link/node-lock.ts';
import { macOfAddress, macOfText } from '../protocol/mac.ts';
import { completeBridge, ensureBridge, readBridge } from './bridge.ts';
import { configuredGateways } from './bridge-addressing.ts';
import { planBridge } from './bridge-plan.ts';
import { ensureVlanGateway, isGatewayApart, planVlanGateway, readGateway } from './vlan-gateway.ts';

/** Gateways are not the bridge's own then. */
const NO_GATEWAYS = { gateways: [], configured: [] };

/** Returns the addresses of the node on the network, none of which may be handed out. Throws CniError 106. */
export function checkBridge(host: Netlink, config: NetworkConfig): IpAddress[] {
  const desired = desiredBridge(config);
  const gateways = { configured: configuredGateways(config), gateways: [] };
  if (config.bridge.vlan === 0) {
    const state = readBridge(host, desired);
    planBridge(state, { ...desired, ...gateways });
    return state.addresses.map(({ address }) => address);
  }
  // Of a bridge that is made, or taken back, between the two questions the gateway would be somebody else's link.
  const read = () => ({ state: readBridge(host, desired), ofGateway: readGateway(host, config.bridge) });
  const { state, ofGateway } = withNodeLock(read, { shared: true });
  planBridge(state, { ...desired, ...NO_GATEWAYS });
  planVlanGateway(ofGateway, state.link, { ...config.bridge, ...gateways });
  return [...state.addresses, ...ofGateway.addresses].map(({ address }) => address);
}

/**
 * Makes the veth pair, and the bridge before it if this is the first pod; the pod's end is left down. Pods of a bridge that is
 * there need not wait for each other.
 */
export function connectToBridge(attaching: Attaching, addressing: Addressing, podMac: Uint8Array): Connection {
  const { config, host, undo } = attaching;
  const { bridgeAddresses } = addressing;
  const gateways = {
    gateways: bridgeAddresses,
    configured: [...configuredGateways(config), ...bridgeAddresses],
  };
  const isApart = isGatewayApart(config, bridgeAddresses);
  const settings = {
    ...desiredBridge(config),
    ...(isApart ? NO_GATEWAYS : gateways),
    mac: bridgeMac(config.bridge.name, bridgeAddresses),
    mtu: config.mtu,
  };
  const connect = (link: Link, gateway: Link): Connection => {
    failpoint('bridge');
    const hostLink = createVeth(host, attaching, {
      mtu: config.mtu,
      podMac,
      bridge: { index: link.index, config: config.bridge },
      deletions: forgottenNeighbours(gateway.index, addressing),
    });
    failpoint('veth');
    // It may have followed that of the new port.
    const bridge = { ...link, mtu: linkFacts(link.name)?.mtu ?? link.mtu };
    return { hostLink, bridge, gateway: isApart ? gateway : bridge };
  };
  const connectIfComplete = () => {
    const link = completeBridge(host, settings);
    return link && connect(link, link);
  };
  const connection =
    (isApart ? undefined : withNodeLock(connectIfComplete, { shared: true })) ??
    withNodeLock(() => {
      const link = ensureBridge(host, settings, undo);
      return connect(link, isApart ? ensureVlanGateway(host, link, { ...config.bridge, ...gateways }, undo) : link);
    });
  failpoint('host-link');
  return connection;
}

function desiredBridge({ bridge }: NetworkConfig) {
  const { name, forceAddress, promiscMode } = bridge;
  return { name, forceAddress, promiscuous: promiscMode, vlanFiltering: filtersVlans(bridge) };
}

/** What the node knows about an earlier pod with this address may be wrong: a runtime can choose MACs. */
function forgottenNeighbours(index: number, { ips, bridgeAddresses }: Addressing): NetlinkRequest[] {
  return bridgeAddresses.length === 0 ? [] : ips.map(({ address: { address: ip } }) => deleteNeighbour({ index, ip }));
}

/** The MAC that a bridge of ours is made with: 6 bytes. */
export function bridgeMac(name: string, [gateway]: readonly Cidr[]): Uint8Array {
  // Without an address the bridge may be joined to those of other nodes: theirs must differ.
  return gateway ? macOfAddress(gateway.address) : macOfText(`${hostname()}/${name}`);
}
