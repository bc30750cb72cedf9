import type { IpFamily } from '../../core/index.ts';
import type { ProxyMode } from '../../proxy/index.ts';
import type { Rules } from '../nft/index.ts';
import type { NodeView } from '../node/index.ts';

/** Where the rules a packet meets are read; `gap`: what of them is not simulated, so that the walk cannot be trusted past it. */
export interface RuleSource {
  readonly rules: Rules;
  readonly gap: string | undefined;
}

/** The rules of the mode. What nf_tables holds, those of iptables-nft among it, is read by key; of the rest it is said that it is not. */
export function ruleSourceOf(mode: ProxyMode, node: NodeView, family: IpFamily): RuleSource {
  const legacy = node.legacyTables(family);
  const rules = node.rules;
  if (mode === 'ipvs') return { rules, gap: 'virtual servers of IPVS are not simulated' };
  if (mode === 'iptables') {
    const where = legacy.length > 0 ? `iptables (legacy: ${legacy.join(', ')})` : 'iptables';
    return { rules, gap: `rules of ${where} are not simulated` };
  }
  const gap =
    legacy.length > 0
      ? `there are rules of iptables (legacy: ${legacy.join(', ')}), which are not simulated`
      : undefined;
  return { rules, gap };
}
