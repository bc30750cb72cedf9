import type { FeatureEntry } from './feature.ts';

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
    name: 'ingresspolicy',
    wanted: ({ features }) => (features.firewall?.ingressPolicy ?? 'open') !== 'open',
    load: async () => (await import('./ingress-policy.ts')).ingressPolicy,
  },
  {
    name: 'macspoofchk',
    wanted: ({ reach }) => reach.checksMac,
    load: async () => (await import('./mac-spoof-check.ts')).macSpoofCheck,
  },
  {
    name: 'bandwidth',
    wanted: ({ features }) => features.bandwidth !== undefined,
    load: async () => (await import('./bandwidth.ts')).bandwidth,
  },
  {
    // Only to be taken down, for attachments that have no record: others made them.
    name: 'reference-plugins',
    wanted: () => false,
    load: async () => (await import('./reference-plugins.ts')).referencePlugins,
  },
];

/** What to bring back after somebody flushed nftables (reassert.ts), loaded when it is asked for. */
export async function loadReassertion() {
  const { featuresOf, reassertFeatures } = await import('./reassert.ts');
  return { featuresOf, reassertFeatures };
}

/** What an uninstallation has to take away (remove-features.ts), loaded when it is asked for. */
export async function loadRemoval() {
  const { removeFeatures } = await import('./remove-features.ts');
  return { removeFeatures };
}

export type {
  AttachmentFeature,
  CollectContext,
  FeatureContext,
  FeatureEntry,
  TearDownContext,
} from './feature.ts';
export type { PodFeatures, Reassertion } from './reassert.ts';
export type { WantedAttachment } from './wanted-attachment.ts';
