import type { NodeFacts } from './node-facts.ts';
import { chainsOf, placeOf, readRuleSets } from './rule-sets.ts';

/** Networks of pods from which docs/migration.md leads to ours. */
export type NetworkKind = 'flannel' | 'portmap' | 'ipMasq';

/** What such a network has made on the node. */
export interface PresentNetwork {
  readonly kind: NetworkKind;
  /** What shows it, in words. */
  readonly sign: string;
}

/** By plugins/meta/portmap, pkg/ip/ipmasq_iptables_linux.go and flannel's pkg/trafficmngr; ours have other names. */
const TRACES: readonly { kind: NetworkKind; link?: RegExp; chain: RegExp; table: RegExp }[] = [
  { kind: 'flannel', link: /^flannel(?:-v6)?\.\d+$/, chain: /^FLANNEL-/, table: /^flannel-ipv[46]$/ },
  { kind: 'portmap', chain: /^CNI-HOSTPORT-/, table: /^cni_hostport$/ },
  { kind: 'ipMasq', chain: /^CNI-[0-9a-f]{24}$/, table: /^cni_plugins_masquerade$/ },
];

/** The networks of others that have left something here, one entry each. */
export async function presentNetworks(node: NodeFacts): Promise<PresentNetwork[]> {
  const { tables } = node.nftables();
  const { sets } = await readRuleSets(node);
  const chains = sets.flatMap((set) => [...chainsOf(set)]);
  return TRACES.flatMap(({ kind, link, chain, table }): PresentNetwork[] => {
    const device = link && node.links().find(({ name }) => link.test(name));
    const inRules = chains.find(({ name }) => chain.test(name));
    const inTables = tables.find(({ name }) => table.test(name));
    const sign = device
      ? `link ${device.name}`
      : inRules
        ? placeOf(inRules)
        : inTables && `nftables table ${inTables.family} ${inTables.name}`;
    return sign === undefined ? [] : [{ kind, sign }];
  });
}
