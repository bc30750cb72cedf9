import type { IpFamily } from '../../../core/index.ts';
import { Nftables } from '../../../netlink/nftables/index.ts';
import { inNetns } from '../../../sys/index.ts';
import { hookedIn } from '../../nft/index.ts';
import { legacyTablesIn } from '../namespaces.ts';

/** Rules within a pod, which nobody here walks. */
export interface PodRules {
  /** Where they are, in words. */
  readonly text: string;
  /** Packets may go to somebody else than they are sent to, as to a mesh's sidecar: what is wrong with their way is nothing then. */
  readonly lead: boolean;
}

/** Tables of legacy iptables with targets that redirect (REDIRECT, DNAT, TPROXY) or mark for policy rules. */
const LEADING_TABLES: ReadonlySet<string> = new Set(['nat', 'mangle']);
/** Hooks where rules of type `filter` do the same (tproxy, fwd). */
const LEADING_HOOKS: ReadonlySet<string> = new Set(['prerouting', 'ingress', 'egress']);
const OF_FAMILY: Readonly<Record<IpFamily, ReadonlySet<string>>> = {
  IPv4: new Set(['ip', 'inet', 'netdev', 'bridge', 'arp']),
  IPv6: new Set(['ip6', 'inet', 'netdev', 'bridge']),
};

/** The rules of a namespace that packets of a family may meet; undefined: there are none. Throws what reading nf_tables throws. */
export function podRulesIn(netns: string, family: IpFamily): PodRules | undefined {
  const legacy = legacyTablesIn(netns, family);
  const chains = inNetns(netns, () => {
    const nft = Nftables.open();
    try {
      // Programs of iptables leave chains behind that have no rules.
      const used = nft.listBaseChains().filter(({ base, use }) => use !== 0 || base?.policy === 'drop');
      const based = used.map((chain) => ({ ...chain, leads: leads(chain.base) }));
      const onLinks = nft.listLinkChains().map((chain) => ({ ...chain, leads: chain.family !== 'arp' }));
      return hookedIn(nft, [...based, ...onLinks]).filter((chain) => OF_FAMILY[family].has(chain.family));
    } finally {
      nft.close();
    }
  });
  const lead = legacy.some((table) => LEADING_TABLES.has(table)) || chains.some((chain) => chain.leads);
  if (legacy.length > 0) return { text: `iptables (legacy) tables ${legacy.join(', ')}`, lead };
  if (!lead && family === 'IPv4' && legacyTablesIn(netns, 'ARP').length > 0)
    return { text: 'arptables (legacy)', lead };
  const first = chains.find((chain) => chain.leads === lead);
  return first && { text: `nf_tables table ${first.family} ${first.table}, chain ${first.name}`, lead };
}

function leads(base: { readonly type: string; readonly hook: string } | undefined): boolean {
  return base !== undefined && (base.type !== 'filter' || LEADING_HOOKS.has(base.hook));
}
