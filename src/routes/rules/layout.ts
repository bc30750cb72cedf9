import { compareText, IP_FAMILIES } from '../../core/index.ts';
import type { TableLayout } from '../../nft/index.ts';
import { encryptionChains } from './encryption-chains.ts';
import { masqueradeChains } from './masquerade-chains.ts';
import type { RuleSettings } from './settings.ts';
import { addressSet, type BlockSet, blockSet, blockSetName, parseBlockSetName, RULES_TABLE } from './table.ts';
import { tunnelChains } from './tunnel-chains.ts';
import { wireguardChains } from './wireguard-chains.ts';

/**
 * The table's sets, chains and rules; their elements are not in it. Pure.
 *
 * @param setNames the sets that have elements
 * @returns undefined: nothing is to be done, so there is no table
 */
export function rulesLayout(settings: RuleSettings, setNames: Iterable<string>): TableLayout | undefined {
  const { tunnelPort, wireguard, masquerade } = settings;
  if (tunnelPort === undefined && !wireguard && !masquerade) return undefined;
  const blockSets = [...setNames].flatMap((name) => parseBlockSetName(name) ?? []).sort(longestFirst);
  const kinds = tunnelPort === undefined ? (['peers'] as const) : (['peers', 'former-peers', 'strangers'] as const);
  return {
    table: RULES_TABLE,
    sets: [
      ...kinds.flatMap((kind) => IP_FAMILIES.map((family) => addressSet(kind, family))),
      ...blockSets.map(blockSet),
    ],
    chains: [
      ...(tunnelPort === undefined ? [] : tunnelChains(tunnelPort, settings)),
      ...(wireguard ? [...wireguardChains(wireguard.port), ...encryptionChains(wireguard, blockSets)] : []),
      ...(masquerade ? masqueradeChains(masquerade, blockSets) : []),
    ],
  };
}

/** A fixed order: the rules are the same whichever Node came first. */
function longestFirst(a: BlockSet, b: BlockSet): number {
  return b.prefixLength - a.prefixLength || compareText(blockSetName(a), blockSetName(b));
}
