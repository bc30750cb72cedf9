import type { NetworkConfig } from '../config/network-config.ts';
import { FEATURES, type FeatureEntry, type WantedAttachment } from '../features/index.ts';
import type { SubnetAddress } from '../link/pod-network.ts';
import { modeRules, podNetwork } from '../pod-networks.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';

/** The features of an attachment, in the order of ADD. */
export function wantedFeatures({ mode, bridge, features }: NetworkConfig, key: AttachmentKey): FeatureEntry[] {
  const reach = modeRules(mode).reach(bridge, key);
  return FEATURES.filter((feature) => feature.wanted({ features, reach }));
}

/**
 * An attachment as its features see it.
 *
 * @param ips the pod's addresses as its interface has them
 * @param mac of the pod's end, 6 bytes
 */
export function wantedAttachment(
  config: NetworkConfig,
  key: AttachmentKey,
  ips: readonly SubnetAddress[],
  mac: Uint8Array,
): WantedAttachment {
  return {
    key,
    features: config.features,
    reach: modeRules(config.mode).reach(config.bridge, key),
    ips: podNetwork(config.mode).addressing.withSubnets(config, ips),
    mac,
  };
}
