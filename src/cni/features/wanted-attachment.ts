import type { FeatureConfig } from '../config/feature-config.ts';
import type { PodReach, SubnetAddress } from '../link/pod-network.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';

/** An attachment as far as what its features make depends on it. */
export interface WantedAttachment {
  /** Network, container ID and interface, and the names on the host that follow from them. */
  readonly key: AttachmentKey;
  readonly features: FeatureConfig;
  readonly reach: PodReach;
  /** The pod's addresses with the prefix of their subnet, whatever prefix its interface has them with. */
  readonly ips: readonly SubnetAddress[];
  /** The MAC that ADD gave the pod's end: 6 bytes. */
  readonly mac: Uint8Array;
}

/** What decides which features an attachment has: known before it has addresses. */
export type FeatureChoice = Pick<WantedAttachment, 'features' | 'reach'>;
