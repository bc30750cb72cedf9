import { hostname } from 'node:os';
import type { IpAddress } from '../core/index.ts';
import { deleteNeighbour, type Netlink, type NetlinkRequest } from '../netlink/index.ts';
import { failpoint } from '../sys/index.ts';
import { type Addressing, configuredGateways } from './addressing.ts';
import type { Connection } from './attach.ts';
import type { Attaching } from './attaching.ts';
import { ensureBridge, readBridge } from './bridge.ts';
import { filtersVlans } from './bridge-config.ts';
import { planBridge } from './bridge-plan.ts';
import type { NetworkConfig } from './config.ts';
import { configurePort, createVeth, deleteHostLink, readHostLink } from './host-link.ts';
import { macOfAddress, macOfText } from './mac.ts';
import { withNodeLock } from './node-lock.ts';

/** Returns the addresses of the bridge, none of which may be handed out. Throws CniError 106. */
export function checkBridge(host: Netlink, config: NetworkConfig): IpAddress[] {
  const state = readBridge(host, config.bridge.name);
  planBridge(state, { ...wishOf(config), configured: configuredGateways(config), gateways: [] });
  return state.addresses.map(({ address }) => address);
}

/** Makes the veth pair, and the bridge before it if this is the first pod; the pod's end is left down. */
export function connectToBridge(attaching: Attaching, addressing: Addressing, podMac: Uint8Array): Connection {
  const { config, key, pod, host, undo } = attaching;
  const { bridgeAddresses } = addressing;
  const settings = {
    ...wishOf(config),
    gateways: bridgeAddresses,
    configured: [...configuredGateways(config), ...bridgeAddresses],
    mac: bridgeMac(config, addressing),
    mtu: config.mtu,
  };
  const bridge = withNodeLock(() => {
    const link = ensureBridge(host, settings, undo);
    failpoint('bridge');
    undo.add('make the veth pair', async () => void (await deleteHostLink(host, key)));
    createVeth(host, key, pod, { master: link.index, mtu: config.mtu, podMac });
    failpoint('veth');
    return link;
  });
  const hostLink = readHostLink(host, key);
  configurePort(host, hostLink, config.bridge, forgottenNeighbours(bridge.index, addressing));
  failpoint('host-link');
  return { hostLink, bridge };
}

function wishOf({ bridge }: NetworkConfig) {
  const { name, forceAddress, promiscMode } = bridge;
  return { name, forceAddress, promiscuous: promiscMode, vlanFiltering: filtersVlans(bridge) };
}

/** What the node knows about an earlier pod with this address may be wrong: a runtime can choose MACs. */
function forgottenNeighbours(index: number, { ips, bridgeAddresses }: Addressing): NetlinkRequest[] {
  return bridgeAddresses.length === 0 ? [] : ips.map(({ address: { address: ip } }) => deleteNeighbour({ index, ip }));
}

function bridgeMac({ bridge }: NetworkConfig, { bridgeAddresses: [gateway] }: Addressing): Uint8Array {
  // Without an address the bridge may be joined to those of other nodes: theirs must differ.
  return gateway ? macOfAddress(gateway.address) : macOfText(`${hostname()}/${bridge.name}`);
}
