import type { NftTable } from '../../netlink/nftables/index.ts';
import { chainsOf, placeOf, type RuleSet } from '../facts/rule-sets.ts';

/** A firewall of the host, and how it is told. */
interface Firewall {
  readonly name: string;
  readonly chain: RegExp;
  /** Of nf_tables. */
  readonly table?: string;
  /** What lets pods through, and with that Services and NodePorts, which lead to pods. */
  readonly remedy: string;
}

const FIREWALLS: readonly Firewall[] = [
  {
    name: 'firewalld',
    chain: /^(?:FWDI_|IN_public|INPUT_direct|INPUT_ZONES)/,
    table: 'firewalld',
    // Of a node's own address is what it sends to pods here itself, and for a NodePort, but by a tunnel.
    remedy:
      'firewall-cmd --permanent --zone=trusted --add-source=<pod CIDR> --add-source=<address of each other node>; firewall-cmd --reload',
  },
  {
    name: 'ufw',
    chain: /^ufw6?-/,
    // The last for NodePorts that lead to pods of other nodes.
    remedy:
      'ufw route allow in on <bridge>; ufw route allow out on <bridge>; ufw allow in on <bridge>; ufw route allow to <pod CIDR>',
  },
  {
    name: 'shorewall',
    // By it its own commands know that it is at work (product_is_started of its lib.common).
    chain: /^shorewall$/,
    remedy:
      'in /etc/shorewall, and in /etc/shorewall6 with ipv6, "pod ipv4" in zones, "pod <bridge> routeback,bridge" in interfaces, "pod all ACCEPT" and "all pod ACCEPT" in policy before what drops; shorewall reload',
  },
];

/** One that is at work. */
export interface FoundFirewall extends Pick<Firewall, 'name' | 'remedy'> {
  /** In words. */
  readonly place: string;
  /** Of nf_tables, or who has the chains that it was told by. */
  readonly where: NftTable | RuleSet['variant'];
}

/** Those that rules of iptables, or tables of nf_tables, are of. */
export function firewallsAmong(sets: readonly RuleSet[], tables: readonly NftTable[]): FoundFirewall[] {
  const chains = sets.flatMap((set) => [...chainsOf(set)]);
  return FIREWALLS.flatMap(({ name, remedy, chain, table }): FoundFirewall[] => {
    const inNft = tables.find((one) => one.name === table);
    if (inNft) return [{ name, remedy, where: inNft, place: `nftables table ${inNft.family} ${inNft.name}` }];
    const seen = chains.find((one) => chain.test(one.name));
    return seen ? [{ name, remedy, where: seen.set.variant, place: placeOf(seen) }] : [];
  });
}
