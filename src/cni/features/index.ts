import type { NftRuleset } from '../../netlink/index.ts';
import type { FeatureEntry } from './feature.ts';
import type { Reassertion } from './reassert.ts';
import type { WantedAttachment } from './wanted-attachment.ts';

/** All features, in the order in which ADD sets them up; DEL takes them down in the reverse order. */
export const FEATURES: readonly FeatureEntry[] = [
  {
    // The first, because it is the one that others can be in the way of.
    name: 'portmappings',
    wanted: ({ features }) => features.portMappings !== undefined,
    load: async () => (await import('./port-mappings.ts')).portMappings,
  },
  {
    name: 'masquerade',
    wanted: ({ features }) => features.ipMasq,
    load: async () => (await import('./masquerade.ts')).masquerade,
  },
  {
    name: 'firewall',
    wanted: ({ features }) => features.firewall !== undefined,
    load: async () => (await import('./firewall.ts')).firewall,
  },
  {
    name: 'bandwidth',
    wanted: ({ features }) => features.bandwidth !== undefined,
    load: async () => (await import('./bandwidth.ts')).bandwidth,
  },
];

/** `reassertFeatures` of reassert.ts, loaded when it is called. */
export async function reassertFeatures(
  ruleset: NftRuleset,
  attachments: readonly WantedAttachment[],
): Promise<Reassertion> {
  return (await import('./reassert.ts')).reassertFeatures(ruleset, attachments);
}

export type {
  AttachmentFeature,
  CollectContext,
  FeatureContext,
  FeatureEntry,
  TearDownContext,
} from './feature.ts';
export type { Reassertion, WantedAttachment };
