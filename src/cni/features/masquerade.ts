import { type IpAddress, isNotFound } from '../../core/index.ts';
import type { NftElement, NftElements, NftReader } from '../../netlink/nftables/index.ts';
import { tableRepairs } from '../../nft/index.ts';
import { failpoint } from '../../sys/index.ts';
import { withRuleset } from '../link/sockets.ts';
import type { AttachmentFeature, DesiredRules } from './feature.ts';
import { describeOwner, isOwnedBy, isStale } from './tables/owner-comment.ts';
import { masqueradeChain, POD_LAYOUT } from './tables/pod-chains.ts';
import { masqueradeElements } from './tables/pod-elements.ts';
import { deletePodElements, deletions, elementsIn, hasTable, presentOf, retried } from './tables/pod-ruleset.ts';
import { POD_TABLE, podSet, podSets } from './tables/pod-table.ts';
import type { WantedAttachment } from './wanted-attachment.ts';

const SETS = podSets(['masquerade']);

function wantedIn(attachment: WantedAttachment): Pick<DesiredRules, 'elements' | 'chains'> {
  return {
    elements: masqueradeElements(attachment),
    chains: attachment.ips.map(({ address }) => masqueradeChain(address, attachment.features.ipMasq?.except)),
  };
}

/**
 * ipMasq: what a pod sends out of its subnet carries the node's address, multicast excepted; as with the reference bridge
 * plugin, but for `nonMasqueradeCidrs`. For an attachment that is one element of a map per address, in place of a chain.
 */
export const masquerade: AttachmentFeature = {
  name: 'masquerade',
  layout: POD_LAYOUT,
  wantedIn,

  setUp(context) {
    const { key, ips, undo } = context;
    if (ips.length === 0) return [];
    const { elements, chains } = wantedIn(context);
    undo.add('masquerade', () =>
      withRuleset((ruleset) => void deletePodElements(ruleset, SETS, (comment) => isOwnedBy(comment, key))),
    );
    withRuleset((ruleset) =>
      retried(isNotFound, () => {
        // Whoever had the address before is gone; an element with its comment would go with its DEL or a GC.
        const left = elements.flatMap((set) => presentOf(ruleset, set));
        ruleset.commit([
          ...tableRepairs(ruleset, POD_LAYOUT, chains),
          ...deletions(left),
          ...elements.map((object) => ({ operation: 'add', object }) as const),
        ]);
      }),
    );
    failpoint('masquerade');
    return [];
  },

  check(context) {
    const { key, ips } = context;
    const { elements: wanted, chains } = wantedIn(context);
    return withRuleset((ruleset) => {
      const problems = wanted.flatMap((set) => {
        const [found] = presentOf(ruleset, set);
        if (!found)
          return [`Set "${set.set}" does not have the pod's address, so what the pod sends is not masqueraded`];
        const [{ comment }] = found.elements as [NftElement];
        return isOwnedBy(comment, key) ? [] : [`Set "${set.set}" has the pod's address for ${describeOwner(comment)}`];
      });
      if (ips.length === 0 || tableRepairs(ruleset, POD_LAYOUT, chains).length === 0) return problems;
      return [...problems, `Rules of nftables table "${POD_TABLE.name}" are missing or were changed`];
    });
  },

  tearDown({ key, addresses }) {
    withRuleset((ruleset) => {
      if (!hasTable(ruleset, POD_TABLE)) return;
      const isOurs = (comment: string | undefined) => isOwnedBy(comment, key);
      if (addresses.length === 0) deletePodElements(ruleset, SETS, isOurs);
      else {
        retried(isNotFound, () => {
          const found = addresses.flatMap((address) => elementOf(ruleset, address, isOurs));
          if (found.length > 0) ruleset.commit(deletions(found));
        });
      }
    });
  },

  collect({ network, valid }) {
    withRuleset((ruleset) => {
      deletePodElements(ruleset, SETS, (comment) => isStale(comment, network, valid));
    });
  },
};

function elementOf(
  ruleset: NftReader,
  { family, bytes }: IpAddress,
  isOurs: (comment: string | undefined) => boolean,
): NftElements[] {
  const set = podSet('masquerade', family);
  const found = ruleset.getElement(set, bytes);
  if (!found || !isOurs(found.comment)) return [];
  return [elementsIn(set, [found])];
}
