import { isExists, isNotFound } from '../../core/index.ts';
import {
  expressionKey,
  type NftChange,
  type NftElement,
  type NftElements,
  type NftRuleset,
} from '../../netlink/nftables/index.ts';
import { type ChainWithRules, type TableLayout, tableRepairs } from '../../nft/index.ts';
import { admit } from './firewall.ts';
import { type AdmissionRule, admissionRules } from './tables/forward-rules.ts';
import { FRAME_LAYOUT, macElements } from './tables/frame-table.ts';
import { describeOwner, linkOf } from './tables/owner-comment.ts';
import { INGRESS_CHAIN, masqueradeChainNamed, POD_LAYOUT } from './tables/pod-chains.ts';
import { ingressElements, masqueradeElements, portElements } from './tables/pod-elements.ts';
import { listPodElements, retried } from './tables/pod-ruleset.ts';
import { podSets } from './tables/pod-table.ts';
import type { WantedAttachment } from './wanted-attachment.ts';

const LAYOUTS: readonly TableLayout[] = [POD_LAYOUT, FRAME_LAYOUT];
const INGRESS_SETS = podSets(['ingress-policy']).map(({ name }) => name);
const ALL_SETS = LAYOUTS.flatMap(({ sets }) => sets);

/** What the features of attachments need in nftables. */
export interface PodFeatures {
  readonly elements: readonly NftElements[];
  readonly admissions: readonly AdmissionRule[];
}

/** What a repair found and did. */
export interface Reassertion {
  /** Chains, rules or sets were missing or changed. */
  readonly structureRepaired: boolean;
  /** How many elements were missing. */
  readonly elementsAdded: number;
  /** Rules that admit pods through a FORWARD chain were missing. */
  readonly admissionRepaired: boolean;
  /** A sentence for each element that somebody else holds by now. */
  readonly conflicts: readonly string[];
}

/** What attachments need, by their configuration. Throws CniError as their ADD would. */
export function featuresOf(attachments: readonly WantedAttachment[]): PodFeatures {
  return {
    elements: attachments.flatMap((attachment) => [
      ...(attachment.config.features.ipMasq ? masqueradeElements(attachment) : []),
      ...portElements(attachment),
      ...macElements(attachment),
      ...ingressElements(attachment),
    ]),
    admissions: attachments
      .filter(({ config }) => config.features.firewall)
      .flatMap(({ key, ips }) =>
        admissionRules(
          key.network,
          ips.map(({ address }) => address),
        ),
      ),
  };
}

/**
 * Brings back what is missing of these features, after somebody flushed the ruleset or parts of it; nothing is written when
 * all is there. What is named twice counts once. What belongs to other attachments is left alone. Each ADD does the same for itself.
 *
 * @throws NftCommitError; errors of the layers below
 */
export function reassertFeatures(ruleset: NftRuleset, { elements, admissions }: PodFeatures): Reassertion {
  const admissionRepaired = admit(ruleset, distinct(admissions));
  const wanted = [...new Map(elements.flatMap(oneByOne).map((set) => [identityOf(set), set])).values()];
  const repaired = retried(
    (error) => isExists(error) || isNotFound(error),
    () => {
      const present = new Map(
        listPodElements(ruleset, ALL_SETS)
          .flatMap(oneByOne)
          .map((set) => [identityOf(set), set.elements[0].comment]),
      );
      const missing = wanted.filter((set) => !present.has(identityOf(set)));
      const structure = LAYOUTS.flatMap((layout) => {
        const inTable = wanted.filter(({ family }) => family === layout.table.family);
        return inTable.length > 0 ? tableRepairs(ruleset, layout, chainsFor(inTable)) : [];
      });
      const changes: NftChange[] = [
        ...structure,
        ...missing.map((object): NftChange => ({ operation: 'create', object })),
      ];
      if (changes.length > 0) ruleset.commit(changes);
      const conflicts = wanted.flatMap((set) => {
        const [holder, owner] = [present.get(identityOf(set)), set.elements[0].comment];
        if (!present.has(identityOf(set)) || linkOf(holder) === linkOf(owner)) return [];
        return [`An element of set "${set.set}" of ${describeOwner(owner)} is held by ${describeOwner(holder)}`];
      });
      return { structureRepaired: structure.length > 0, elementsAdded: missing.length, conflicts };
    },
  );
  return { ...repaired, admissionRepaired };
}

type OneElement = Omit<NftElements, 'elements'> & { readonly elements: readonly [NftElement] };

function oneByOne({ elements, ...set }: NftElements): OneElement[] {
  return elements.map((element) => ({ ...set, elements: [element] }));
}

/** The chains that elements lead to, or that look them up, besides those that are always there. */
function chainsFor(sets: readonly OneElement[]): ChainWithRules[] {
  const names = sets.flatMap(({ elements: [{ verdict }] }) => (verdict && 'chain' in verdict ? [verdict.chain] : []));
  const ofIngress = sets.some(({ set }) => INGRESS_SETS.includes(set)) ? [INGRESS_CHAIN] : [];
  return [...[...new Set(names)].flatMap((name) => masqueradeChainNamed(name) ?? []), ...ofIngress];
}

function distinct(rules: readonly AdmissionRule[]): AdmissionRule[] {
  const textOf = ({ family, comment, expressions }: AdmissionRule) =>
    JSON.stringify([family, comment, expressions.map(expressionKey)]);
  return [...new Map(rules.map((rule) => [textOf(rule), rule])).values()];
}

function identityOf({ set, elements: [element] }: OneElement): string {
  const bytes = [element.key, element.keyEnd].map((part) => Buffer.from(part ?? []).toString('hex'));
  return [set, ...bytes].join(' ');
}
