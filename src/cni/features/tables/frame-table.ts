import {
  counter,
  drop,
  interfaceName,
  lookup,
  meta,
  type NftElements,
  payload,
  type SetRef,
  type TableRef,
} from '../../../netlink/nftables/index.ts';
import type { TableLayout } from '../../../nft/index.ts';
import type { WantedAttachment } from '../wanted-attachment.ts';
import { ownerComment } from './owner-comment.ts';
import { fields } from './pod-elements.ts';
import { elementsIn } from './pod-ruleset.ts';

/*
 * The nftables table behind macspoofchk. Frames that a bridge passes on are seen by tables of family `bridge` alone. As in
 * the other table of ours the rule is fixed, and an attachment is elements of sets: `nft list table bridge nodeplane-cni`.
 */

export const FRAME_TABLE: TableRef = { kind: 'table', family: 'bridge', name: 'nodeplane-cni' };

/** Links of pods whose frames are looked at. */
const CHECKED_LINKS: SetRef = frameSet('mac-checked');
/** Their names with the MAC their frames may come from. */
const MACS: SetRef = frameSet('macs');

/** Before whoever else looks at frames, and before the bridge learns from them where a MAC is. */
const RAW = -300;

export const FRAME_LAYOUT: TableLayout = {
  table: FRAME_TABLE,
  sets: [
    { ...CHECKED_LINKS, key: ['ifname'] },
    { ...MACS, key: ['ifname', 'ether_addr'] },
  ],
  chains: [
    {
      chain: {
        kind: 'chain',
        family: FRAME_TABLE.family,
        table: FRAME_TABLE.name,
        name: 'prerouting',
        base: { type: 'filter', hook: 'prerouting', priority: RAW },
      },
      rules: [
        // iifname @mac-checked iifname . ether saddr != @macs counter drop
        [
          meta('iifname'),
          lookup(CHECKED_LINKS.name),
          meta('iifname'),
          payload.etherSaddr(4),
          lookup(MACS.name, { invert: true }),
          counter,
          drop,
        ],
      ],
    },
  ],
};

/** The elements by which frames of the pod with another source MAC are dropped. */
export function macElements({ key, mac }: WantedAttachment): NftElements[] {
  const link = interfaceName(key.hostName);
  const comment = ownerComment(key);
  return [elementsIn(MACS, [{ key: fields(link, mac), comment }]), elementsIn(CHECKED_LINKS, [{ key: link, comment }])];
}

function frameSet(name: string): SetRef {
  return { kind: 'set', family: FRAME_TABLE.family, table: FRAME_TABLE.name, name };
}
