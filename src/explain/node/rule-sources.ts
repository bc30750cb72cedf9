import { existsSync } from 'node:fs';
import { errorText, type IpFamily } from '../../core/index.ts';
import { resolveFamily, withNetlink } from '../../netlink/index.ts';
import { listIpSets, listMembers } from '../../netlink/ipset/index.ts';
import {
  decodeDestination,
  decodeVirtualServer,
  destinationListing,
  IPVS_GENL_NAME,
  virtualServerListing,
} from '../../netlink/ipvs/index.ts';
import type { Nftables } from '../../netlink/nftables/index.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER } from '../../netlink/uapi/index.ts';
import { type IptablesVariant, iptablesTool } from '../../proxy/rules/index.ts';
import type { Exec } from '../../sys/index.ts';
import { IpSetMembers, LegacyRules, type Saved } from '../iptables/index.ts';
import { type IpvsReader, IpvsServers } from '../ipvs/index.ts';
import { KernelRules, NftRules } from '../nft/index.ts';
import type { RuleSource } from '../walk/index.ts';
import { legacyTablesIn } from './namespaces.ts';

/** All that has rules on this node for packets of a family. */
export interface RulesHere {
  readonly sources: readonly RuleSource[];
  /** What of them could not be read, so that a walk cannot be trusted; undefined: nothing. */
  readonly gap: string | undefined;
}

const IP_FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

type SavedTables = Partial<Record<IpFamily, Saved>>;

const IPTABLES_TABLES: ReadonlySet<string> = new Set(['raw', 'mangle', 'nat', 'filter', 'security']);

/**
 * Finds what has rules on this node: nf_tables, read by key when a walk comes there; iptables of both variants, which only the save
 * programs tell whole, where they have tables; IPVS.
 */
export async function readRules(nft: Nftables, exec: Exec): Promise<Readonly<Record<IpFamily, RulesHere>>> {
  const gaps = new Map<IpFamily, string>();
  const save = async (variant: IptablesVariant, families: readonly IpFamily[]): Promise<SavedTables> => {
    const saved: SavedTables = {};
    for (const family of families) {
      try {
        saved[family] = await iptablesTool(family, variant, exec).saveAll();
      } catch (error) {
        gaps.set(family, `rules of iptables (${variant}) cannot be read: ${errorText(error)}`);
      }
    }
    return saved;
  };
  const tables = nft.listTables();
  const hasNft = (family: IpFamily) =>
    tables.some((table) => table.family === (family === 'IPv4' ? 'ip' : 'ip6') && IPTABLES_TABLES.has(table.name));
  const ofNft = await save('nft', IP_FAMILIES.filter(hasNft));
  const legacy = await save(
    'legacy',
    IP_FAMILIES.filter((family) => legacyTablesIn(undefined, family).length > 0),
  );
  const facts = { ipsets: ipsetsHere() };
  const sources = [
    new NftRules(new KernelRules(nft, ofNft), facts),
    new LegacyRules(legacy, facts),
    ...(existsSync('/proc/thread-self/net/ip_vs') ? [new IpvsServers(ipvsHere())] : []),
  ];
  return { IPv4: { sources, gap: gaps.get('IPv4') }, IPv6: { sources, gap: gaps.get('IPv6') } };
}

function ipsetsHere(): IpSetMembers {
  return new IpSetMembers({
    listSets: () => withNetlink(NETLINK_NETFILTER, listIpSets),
    listMembers: (name) => withNetlink(NETLINK_NETFILTER, (netlink) => listMembers(netlink, name)),
  });
}

function ipvsHere(): IpvsReader {
  return {
    listServers: () =>
      withNetlink(NETLINK_GENERIC, (netlink) =>
        netlink.dump(virtualServerListing(resolveFamily(netlink, IPVS_GENL_NAME))).map(decodeVirtualServer),
      ),
    listDestinations: (key) =>
      withNetlink(NETLINK_GENERIC, (netlink) =>
        netlink
          .dump(destinationListing(resolveFamily(netlink, IPVS_GENL_NAME), key))
          .map((payload) => decodeDestination(payload, key.kind === 'mark' ? key.family : key.address.family)),
      ),
  };
}
