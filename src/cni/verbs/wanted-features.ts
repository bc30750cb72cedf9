import type { NetworkConfig } from '../config/network-config.ts';
import { FEATURES, type FeatureEntry, type WantedAttachment } from '../features/index.ts';
import type { SubnetAddress } from '../link/pod-network.ts';
import { podNetwork } from '../pod-networks.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';

/** The features of an attachment, in the order of ADD. */
export function wantedFeatures({ mode, bridge, features }: NetworkConfig, key: AttachmentKey): FeatureEntry[] {
  const reach = podNetwork(mode).reach(bridge, key);
  return FEATURES.filter((feature) => feature.wanted({ features, reach }));
}

/**
 * What features are told about an attachment.
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
  const { reach, addressing } = podNetwork(config.mode);
  return {
    key,
    features: config.features,
    reach: reach(config.bridge, key),
    ips: addressing.withSubnets(config, ips),
    mac,
  };
}
