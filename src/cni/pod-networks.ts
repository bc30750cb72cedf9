import { bridgeNetwork } from './bridge/bridge-network.ts';
import type { NetworkMode } from './config/network-config.ts';
import type { PodNetwork } from './link/pod-network.ts';
import { routedNetwork } from './routed/routed-network.ts';

/** The only place where a mode is chosen: everything else asks the network. */
const NETWORKS: Readonly<Record<NetworkMode, PodNetwork>> = {
  bridge: bridgeNetwork,
  routed: routedNetwork,
};

/** All modes. */
export const NETWORK_MODES = Object.keys(NETWORKS) as readonly NetworkMode[];

/** The kind of network that a mode names. */
export function podNetwork(mode: NetworkMode): PodNetwork {
  return NETWORKS[mode];
}
