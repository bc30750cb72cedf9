import { isExists, isNotFound } from '../../core/index.ts';
import type { NftChange, NftElements, NftRuleset } from '../../netlink/index.ts';
import { admit, subnetsByFamily } from './firewall.ts';
import { describeOwner, isOwnedBy } from './owner-comment.ts';
import { type ChainWithRules, masqueradeChain, masqueradeChainName } from './pod-chains.ts';
import { masqueradeElements, portElements } from './pod-elements.ts';
import { listPodElements, retried } from './pod-ruleset.ts';
import type { PodSetKind } from './pod-table.ts';
import { tableRepairs } from './table-repair.ts';
import type { WantedAttachment } from './wanted-attachment.ts';

const ALL_KINDS: readonly PodSetKind[] = ['masquerade', 'ports', 'address-ports', 'hairpin'];

/** What a repair found and did. */
export interface Reassertion {
  /** Chains, rules and sets that were missing or changed. */
  readonly structureRepaired: boolean;
  /** How many elements were missing. */
  readonly elementsAdded: number;
  /** Rules that admit pods through a FORWARD chain were missing. */
  readonly admissionRepaired: boolean;
  /** A sentence for each element that somebody else holds by now. */
  readonly conflicts: readonly string[];
}

/**
 * Brings back what masquerade, port mappings and firewall admission of these attachments need in nftables, after somebody
 * flushed the ruleset or parts of it; nothing is written when all is there. What belongs to other attachments is left alone.
 * Each ADD does the same for itself.
 *
 * @throws NftCommitError; errors of the layers below
 */
export function reassertFeatures(ruleset: NftRuleset, attachments: readonly WantedAttachment[]): Reassertion {
  const admissionRepaired = admissionsOf(attachments)
    .map(({ family, network, subnets }) => admit(ruleset, family, network, subnets))
    .includes(true);
  const repaired = retried(
    (error) => isExists(error) || isNotFound(error),
    () => {
      const present = indexOf(listPodElements(ruleset, ALL_KINDS));
      const added: NftElements[] = [];
      const conflicts: string[] = [];
      for (const attachment of attachments) {
        for (const wanted of wantedElements(attachment)) {
          const owner = present.get(identityOf(wanted));
          if (owner === undefined) added.push(wanted);
          else if (!isOwnedBy(owner, attachment.key)) {
            conflicts.push(
              `An element of set "${wanted.set}" that attachment "${attachment.key.alias}" needs is held by ${describeOwner(owner)}`,
            );
          }
        }
      }
      const structure = tableRepairs(ruleset, masqueradeChains(attachments));
      const changes: NftChange[] = [...structure, ...added.map((object) => ({ operation: 'create', object }) as const)];
      if (changes.length > 0) ruleset.commit(changes);
      return { structureRepaired: structure.length > 0, elementsAdded: added.length, conflicts };
    },
  );
  return { ...repaired, admissionRepaired };
}

/** What the firewall has to admit, once for each network and subnet. */
function admissionsOf(attachments: readonly WantedAttachment[]) {
  const admissions = attachments
    .filter(({ config }) => config.features.firewall)
    .flatMap(({ key: { network }, ips }) =>
      subnetsByFamily(ips).flatMap(([family, subnets]) =>
        subnets.map((subnet) => ({ family, network, subnets: [subnet] })),
      ),
    );
  const nameOf = ({ network, subnets: [subnet] }: (typeof admissions)[number]) =>
    `${network} ${masqueradeChainName(subnet!)}`;
  return [...new Map(admissions.map((admission) => [nameOf(admission), admission])).values()];
}

/** One element each. */
function wantedElements(attachment: WantedAttachment): NftElements[] {
  const { ipMasq } = attachment.config.features;
  return [...(ipMasq ? masqueradeElements(attachment) : []), ...portElements(attachment)];
}

function masqueradeChains(attachments: readonly WantedAttachment[]): ChainWithRules[] {
  const chains = attachments
    .filter(({ config }) => config.features.ipMasq)
    .flatMap(({ ips }) => ips.map(({ address }) => masqueradeChain(address)));
  return [...new Map(chains.map((chain) => [chain.chain.name, chain])).values()];
}

/** The comments of all elements by what they are. */
function indexOf(sets: readonly NftElements[]): Map<string, string> {
  const index = new Map<string, string>();
  for (const set of sets) {
    for (const element of set.elements) index.set(identityOf({ ...set, elements: [element] }), element.comment ?? '');
  }
  return index;
}

function identityOf({ set, elements: [element] }: NftElements): string {
  const bytes = [element?.key, element?.keyEnd].map((part) => Buffer.from(part ?? []).toString('hex'));
  return [set, ...bytes].join(' ');
}
