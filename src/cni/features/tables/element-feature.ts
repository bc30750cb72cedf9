import { isNotFound } from '../../../core/index.ts';
import type { NftElements, NftRuleset, SetRef } from '../../../netlink/nftables/index.ts';
import { type ChainWithRules, type TableLayout, tableRepairs } from '../../../nft/index.ts';
import { failpoint } from '../../../sys/index.ts';
import { withRuleset } from '../../link/sockets.ts';
import type { AttachmentKey } from '../../protocol/attachment-key.ts';
import type { AttachmentFeature } from '../feature.ts';
import type { WantedAttachment } from '../wanted-attachment.ts';
import { isOwnedBy, isStale } from './owner-comment.ts';
import {
  deletePodElements,
  deletions,
  hasTable,
  listPodElements,
  presentOf,
  retried,
  selectElements,
} from './pod-ruleset.ts';

/** What is particular about such a feature. */
export interface ElementFeatureSettings {
  /** As in `AttachmentFeature`. */
  readonly name: string;
  /** The table of its sets. */
  readonly layout: TableLayout;
  /** Chains that it needs besides those that are always there. */
  readonly chains: readonly ChainWithRules[];
  /** The sets that it puts elements into. */
  readonly sets: readonly SetRef[];
  /** The elements of an attachment, one for each object. */
  readonly elements: (attachment: WantedAttachment) => readonly NftElements[];
  /** A sentence that says what it means that some of them are missing. */
  readonly whenMissing: (attachment: WantedAttachment) => string;
}

/** A feature that consists of elements of sets, which rules look up that are the same for all attachments. */
export function elementFeature(settings: ElementFeatureSettings): AttachmentFeature {
  const { name, layout, chains, sets } = settings;
  const removeOwn = (ruleset: NftRuleset, key: AttachmentKey) =>
    void deletePodElements(ruleset, sets, (comment) => isOwnedBy(comment, key));
  return {
    name,
    layout,
    wantedIn: (attachment) => ({ elements: settings.elements(attachment), chains }),

    setUp(context) {
      const { key, undo } = context;
      const wanted = settings.elements(context);
      undo.add(name, () => withRuleset((ruleset) => removeOwn(ruleset, key)));
      withRuleset((ruleset) =>
        retried(isNotFound, () => {
          // Left by an earlier attempt, perhaps with another MAC or address, or by somebody who had the address and is gone:
          // an element with that comment would go with the other one's DEL.
          const found = wanted.flatMap((set) => presentOf(ruleset, set)).flatMap(({ elements }) => elements);
          const left = found.length > 0 ? listPodElements(ruleset, sets) : [];
          const isReplaced = (comment: string | undefined) =>
            isOwnedBy(comment, key) || found.some((element) => element.comment === comment);
          ruleset.commit([
            ...tableRepairs(ruleset, layout, chains),
            ...deletions(selectElements(left, isReplaced)),
            ...wanted.map((object) => ({ operation: 'add', object }) as const),
          ]);
        }),
      );
      failpoint(name);
      return [];
    },

    check(context) {
      return withRuleset((ruleset) => {
        const isComplete = settings
          .elements(context)
          .every((set) =>
            presentOf(ruleset, set).some(({ elements: [element] }) => isOwnedBy(element?.comment, context.key)),
          );
        const { family, name: table } = layout.table;
        return [
          ...(isComplete ? [] : [settings.whenMissing(context)]),
          ...(tableRepairs(ruleset, layout, chains).length === 0
            ? []
            : [`Rules of nftables table "${family} ${table}" are missing or were changed`]),
        ];
      });
    },

    tearDown({ key }) {
      withRuleset((ruleset) => {
        if (hasTable(ruleset, layout.table)) removeOwn(ruleset, key);
      });
    },

    collect({ network, valid }) {
      withRuleset((ruleset) => {
        deletePodElements(ruleset, sets, (comment) => isStale(comment, network, valid));
      });
    },
  };
}
