import type { Cidr } from '../../core/index.ts';
import type { NftReader, NftRuleset } from '../../netlink/nftables/index.ts';
import type { TableLayout } from '../../nft/index.ts';
import type { AttachmentFeature, DesiredRules, FeatureEntry } from './feature.ts';
import { joinRules } from './join-rules.ts';
import { isMacvlan } from './macvlan/name.ts';
import type { Reassertion } from './reassert.ts';
import type { WantedAttachment } from './wanted-attachment.ts';

/** All features, in the order in which ADD sets them up; DEL takes them down in the reverse order. */
export const FEATURES: readonly FeatureEntry[] = [
  {
    // The first, because it is the one that others can be in the way of.
    name: 'portmappings',
    wanted: ({ features }) => features.portMappings !== undefined,
    load: async () => (await import('./ports/port-mappings.ts')).portMappings,
  },
  {
    name: 'masquerade',
    wanted: ({ features }) => features.ipMasq !== undefined,
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
    // The last, because it may ask another plugin for addresses.
    name: 'macvlan',
    wanted: ({ features }) => features.macvlan !== undefined,
    ownInterface: { key: 'macvlan', isIn: ({ interfaces }) => interfaces.some(isMacvlan) },
    load: async () => (await import('./macvlan/macvlan.ts')).macvlan,
  },
  {
    // Only to be taken down, for attachments that have no record: others made them.
    name: 'reference-plugins',
    wanted: () => false,
    load: async () => (await import('./reference-plugins.ts')).referencePlugins,
  },
];

/** What brings back the rules of attachments after somebody flushed nftables; loaded when it is asked for. */
export async function loadReassertion() {
  const { desiredRules, reassertRules } = await import('./reassert.ts');
  const { obstaclesTo, unlessChanging } = await import('./obstacles/obstacles.ts');
  const { rangeAdmissions } = await import('./tables/forward-rules.ts');
  const features = await loadAll();
  const layouts = layoutsOf(features);
  return {
    /** What attachments want in nf_tables by all their features. Throws CniError as their ADD would. */
    featuresOf: (attachments: readonly WantedAttachment[]) => desiredRules(features, attachments),
    /** What lets ranges of pods through, on whichever node they are. */
    passageOf: (ranges: readonly Cidr[]): DesiredRules => joinRules([{ admissions: rangeAdmissions(ranges) }]),
    /** Brings back what is missing of it. */
    reassertFeatures: (
      ruleset: NftRuleset,
      rules: DesiredRules,
      links?: () => ReadonlySet<string>,
      options?: { readonly movesJump: boolean },
    ): Reassertion => reassertRules(ruleset, layouts, rules, links, options),
    /**
     * A sentence for each chain of others that may drop packets of pods of this node, and cannot be changed from here; undefined: the
     * ruleset does not hold still.
     */
    obstaclesOf: (ruleset: NftReader, { passing }: Pick<DesiredRules, 'passing'>): string[] | undefined =>
      unlessChanging(() => obstaclesTo(ruleset, passing)),
    /** In what the kernel differs from it; nothing is changed. */
    compareFeatures: async (ruleset: NftRuleset, rules: DesiredRules, links?: () => ReadonlySet<string>) => {
      const { compareRules } = await import('./compare-rules.ts');
      return compareRules(ruleset, layouts, rules, links);
    },
  };
}

/** Comparison and repair of what limits the traffic of attachments, loaded when it is asked for. */
export const loadLimits = () => import('./limits.ts');

/** What an uninstallation has to take away, loaded when it is asked for. */
export async function loadRemoval() {
  const { removeRules } = await import('./remove-rules.ts');
  const features = await loadAll();
  return { removeFeatures: (ruleset: NftRuleset) => removeRules(ruleset, layoutsOf(features), features) };
}

async function loadAll() {
  return Promise.all(FEATURES.map(async ({ wanted, load }) => ({ ...(await load()), wanted })));
}

/** The tables of features, each once. */
function layoutsOf(features: readonly AttachmentFeature[]): TableLayout[] {
  return [...new Set(features.flatMap(({ layout }) => layout ?? []))];
}

export type {
  AttachmentFeature,
  DesiredRules,
  FeatureEntry,
  LeaveContext,
  MadeInterface,
  TearDownContext,
} from './feature.ts';
export { joinRules } from './join-rules.ts';
export type { WantedAttachment } from './wanted-attachment.ts';
