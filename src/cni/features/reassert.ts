import { isExists, isNotFound } from '../../core/index.ts';
import {
  expressionKey,
  type NftChange,
  type NftElement,
  type NftElements,
  type NftFamily,
  type NftRuleset,
} from '../../netlink/nftables/index.ts';
import { type ChainWithRules, type TableLayout, tableRepairs } from '../../nft/index.ts';
import type { AttachmentFeature, DesiredRules } from './feature.ts';
import { joinRules } from './join-rules.ts';
import { admit } from './tables/forward-chain.ts';
import type { AdmissionRule } from './tables/forward-rules.ts';
import { describeOwner, linkOf } from './tables/owner-comment.ts';
import { listPodElements, retried } from './tables/pod-ruleset.ts';
import type { FeatureChoice, WantedAttachment } from './wanted-attachment.ts';

/** A feature with the question who has it. */
export interface LoadedFeature extends AttachmentFeature {
  /** As in `FeatureEntry`. */
  wanted(attachment: FeatureChoice): boolean;
}

/** What a repair found and did. */
export interface Reassertion {
  /** Chains, rules or sets were missing or changed. */
  readonly structureRepaired: boolean;
  /** How many elements were missing. */
  readonly elementsAdded: number;
  /** Rules that admit pods through a FORWARD chain were missing. */
  readonly admissionRepaired: boolean;
  /** Whether the jump to them had rules of others behind it, and was moved behind those, or was to be left. */
  readonly jump: 'in place' | 'moved' | 'left';
  /** A sentence for each element that somebody else holds by now. */
  readonly conflicts: readonly string[];
}

/** What attachments want in nf_tables by all their features. Throws CniError as their ADD would. */
export function desiredRules(
  features: readonly LoadedFeature[],
  attachments: readonly WantedAttachment[],
): DesiredRules {
  return joinRules(
    attachments.flatMap((attachment) =>
      features.filter((feature) => feature.wanted(attachment)).map((feature) => feature.wantedIn(attachment)),
    ),
  );
}

/**
 * Brings back what is missing of these rules, after somebody flushed the ruleset or parts of it; nothing is written when all
 * is there. What is named twice counts once. What belongs to other attachments is left alone. Each ADD does the same for
 * itself.
 *
 * @param layouts the tables of all features
 * @param links the node's links now, asked when something is missing: a DEL takes a pod's link first, then its rules, so that what
 *   is missing of a pod without a link was not flushed. @default every pod has its link
 * @param options.movesJump whether the jump in chain FORWARD is moved behind what others put behind it. @default true
 * @throws NftCommitError; errors of the layers below
 */
export function reassertRules(
  ruleset: NftRuleset,
  layouts: readonly TableLayout[],
  { elements, chains, admissions }: DesiredRules,
  links?: () => ReadonlySet<string>,
  options?: { readonly movesJump: boolean },
): Reassertion {
  const sets = layouts.flatMap((layout) => layout.sets);
  const admission = admit(ruleset, distinctRules(admissions), options);
  const wanted = [...new Map(elements.flatMap(oneByOne).map((set) => [identityOf(set), set])).values()];
  const repaired = retried(
    (error) => isExists(error) || isNotFound(error),
    () => {
      const present = new Map(
        listPodElements(ruleset, sets)
          .flatMap(oneByOne)
          .map((set) => [identityOf(set), set.elements[0].comment]),
      );
      const absent = wanted.filter((set) => !present.has(identityOf(set)));
      const standing = absent.length > 0 ? links?.() : undefined;
      const missing = absent.filter((set) => !standing || standing.has(linkOf(set.elements[0].comment) ?? ''));
      const structure = layouts.flatMap((layout) => {
        if (!wanted.some((set) => isIn(layout, set))) return [];
        const more = distinctChains(chains.filter(({ chain }) => isIn(layout, chain)));
        return tableRepairs(ruleset, layout, more);
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
  const jump = admission.has('left') ? 'left' : admission.has('moved') ? 'moved' : 'in place';
  return { ...repaired, admissionRepaired: admission.has('missing'), jump };
}

type OneElement = Omit<NftElements, 'elements'> & { readonly elements: readonly [NftElement] };

function oneByOne({ elements, ...set }: NftElements): OneElement[] {
  return elements.map((element) => ({ ...set, elements: [element] }));
}

function isIn({ table }: TableLayout, object: { readonly family: NftFamily; readonly table: string }): boolean {
  return object.family === table.family && object.table === table.name;
}

function distinctChains(chains: readonly ChainWithRules[]): ChainWithRules[] {
  return [...new Map(chains.map((chain) => [chain.chain.name, chain])).values()];
}

function distinctRules(rules: readonly AdmissionRule[]): AdmissionRule[] {
  const textOf = ({ family, comment, expressions }: AdmissionRule) =>
    JSON.stringify([family, comment, expressions.map(expressionKey)]);
  return [...new Map(rules.map((rule) => [textOf(rule), rule])).values()];
}

function identityOf({ set, elements: [element] }: OneElement): string {
  const bytes = [element.key, element.keyEnd].map((part) => Buffer.from(part ?? []).toString('hex'));
  return [set, ...bytes].join(' ');
}
