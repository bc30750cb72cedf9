import { IP_FAMILIES, type IpFamily } from '../../core/index.ts';
import { type Expression, goto, lookup, payload, returnToCaller } from '../../netlink/nftables/index.ts';
import { type ChainWithRules, inBlockOf, isFamily, SRCNAT } from '../../nft/index.ts';
import type { MasqueradeSettings } from './settings.ts';
import { addressSetName, type BlockSet, type BlockSetKind, blockSetName, chainRef } from './table.ts';

/**
 * Behind the Services part (100) and the ports of pods (101): the first of several tables that translates a packet decides, and
 * what a Service wants of the client's address comes first.
 */
export const AFTER_OTHERS = SRCNAT + 2;

/**
 * Masquerades what the given sources send, unless it goes where packets keep their source.
 *
 * @param blockSets the sets of blocks in use
 */
export function masqueradeChains(
  { keepsSourceToNodes, randomFully }: MasqueradeSettings,
  blockSets: readonly BlockSet[],
): ChainWithRules[] {
  const isIn = (kind: BlockSetKind, which: 'saddr' | 'daddr', family: IpFamily): Expression[][] =>
    blockSets
      .filter((set) => set.kind === kind && set.family === family)
      .map((set) => inBlockOf(which, family, { prefixLength: set.prefixLength, set: blockSetName(set) }));
  const masquerade: Expression = { kind: 'masquerade', ...(randomFully && { flags: ['random-fully'] }) };
  return [
    ...IP_FAMILIES.map((family) => {
      const isToNode = [payload.daddr(family), lookup(addressSetName('peers', family))];
      const kept = [...isIn('kept', 'daddr', family), ...(keepsSourceToNodes ? [isToNode] : [])];
      return {
        chain: chainRef(chainName(family)),
        // The family is known here; said again, the rules can be read in the output of `nft`.
        rules: [...kept.map((isKept) => [...isFamily(family), ...isKept, returnToCaller]), [masquerade]],
      };
    }),
    {
      chain: { ...chainRef('masquerade-sources'), base: { type: 'nat', hook: 'postrouting', priority: AFTER_OTHERS } },
      rules: IP_FAMILIES.flatMap((family) =>
        isIn('masqueraded', 'saddr', family).map((isSource) => [
          ...isFamily(family),
          ...isSource,
          goto(chainName(family)),
        ]),
      ),
    },
  ];
}

function chainName(family: IpFamily): string {
  return `masquerade-${family.toLowerCase()}`;
}
