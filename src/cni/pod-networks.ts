import { bridgeMode } from './bridge/bridge-mode.ts';
import { bridgeNetwork } from './bridge/bridge-network.ts';
import type { NetworkMode } from './config/network-config.ts';
import type { ModeRules, PodNetwork } from './link/pod-network.ts';
import { routedMode } from './routed/routed-mode.ts';
import { routedNetwork } from './routed/routed-network.ts';

// The only place where a mode is chosen: everything else asks what is found here. Two tables, because the agent needs the
// first alone, and a bundle is to hold nothing that its program does not use.

const RULES: Readonly<Record<NetworkMode, ModeRules>> = { bridge: bridgeMode, routed: routedMode };
const NETWORKS: Readonly<Record<NetworkMode, PodNetwork>> = { bridge: bridgeNetwork, routed: routedNetwork };

/** What a mode makes of the configuration of its networks. */
export function modeRules(mode: NetworkMode): ModeRules {
  return RULES[mode];
}

/** How networks of a mode are made and checked. */
export function podNetwork(mode: NetworkMode): PodNetwork {
  return NETWORKS[mode];
}
