import { existsSync } from 'node:fs';
import { atOnce, errorText, type IpFamily } from '../../core/index.ts';
import { resolveFamily, withNetlink } from '../../netlink/index.ts';
import { listIpSets, listMembers } from '../../netlink/ipset/index.ts';
import {
  decodeDestination,
  decodeVirtualServer,
  destinationListing,
  IPVS_GENL_NAME,
  listIpvsConnections,
  virtualServerListing,
} from '../../netlink/ipvs/index.ts';
import type { ChainRef, Nftables } from '../../netlink/nftables/index.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER } from '../../netlink/uapi/index.ts';
import { iptablesTool, parseList, programName } from '../../proxy/rules/index.ts';
import { type Exec, execNow, readSysctl } from '../../sys/index.ts';
import { IpSetMembers, LegacyRules, printedTables, type Saved } from '../iptables/index.ts';
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

const IPTABLES_TABLES: ReadonlySet<string> = new Set(['raw', 'mangle', 'nat', 'filter', 'security']);

/**
 * Finds what has rules on this node: nf_tables, read by key when a walk comes there, with what iptables-nft says of a chain that it
 * wrote; legacy iptables, which the kernel gives out by whole tables only; IPVS.
 */
export async function readRules(nft: Nftables, exec: Exec): Promise<Readonly<Record<IpFamily, RulesHere>>> {
  const gaps = new Map<IpFamily, string>();
  const legacy: Partial<Record<IpFamily, Saved>> = {};
  for (const family of ['IPv4', 'IPv6'] as const) {
    if (legacyTablesIn(undefined, family).length === 0) continue;
    try {
      legacy[family] = printedTables(await iptablesTool(family, 'legacy', exec).printAll());
    } catch (error) {
      gaps.set(family, `rules of iptables (legacy) cannot be read: ${errorText(error)}`);
    }
  }
  const facts = { ipsets: ipsetsHere() };
  const sources = [
    new NftRules(new KernelRules(nft, listOfIptables), facts),
    new LegacyRules(legacy, facts),
    ...(existsSync('/proc/thread-self/net/ip_vs') ? [new IpvsServers(ipvsHere())] : []),
  ];
  return { IPv4: { sources, gap: gaps.get('IPv4') }, IPv6: { sources, gap: gaps.get('IPv6') } };
}

/** One chain: all of them take seconds at 10,000 Services, and a walk comes to a dozen. Undefined: no iptables-nft, or no table of its. */
function listOfIptables({ family, table, name }: ChainRef): readonly string[] | undefined {
  if ((family !== 'ip' && family !== 'ip6') || !IPTABLES_TABLES.has(table)) return undefined;
  const program = programName(family === 'ip' ? 'IPv4' : 'IPv6', 'nft');
  const printed = execNow(program, ['-t', table, '-S', name]);
  return printed === undefined ? undefined : atOnce(parseList(table, name, printed));
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
    listRemembered: () => listIpvsConnections(({ clientPort }) => clientPort === 0),
    get isTracked() {
      return readSysctl('net/ipv4/vs/conntrack') === '1';
    },
    get forgetsDrained() {
      return readSysctl('net/ipv4/vs/expire_quiescent_template') === '1';
    },
  };
}
