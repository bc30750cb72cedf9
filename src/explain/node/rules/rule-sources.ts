import { existsSync } from 'node:fs';
import { atOnce, errorText, type IpFamily } from '../../../core/index.ts';
import { resolveFamily, withNetlink } from '../../../netlink/index.ts';
import { getSetName, listIpSets, listMembers } from '../../../netlink/ipset/index.ts';
import {
  decodeDestination,
  decodeVirtualServer,
  destinationListing,
  IPVS_GENL_NAME,
  listIpvsConnections,
  virtualServerListing,
} from '../../../netlink/ipvs/index.ts';
import type { ChainRef, Nftables } from '../../../netlink/nftables/index.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER } from '../../../netlink/uapi/index.ts';
import { type IptablesVariant, parseList, programName } from '../../../proxy/rules/index.ts';
import { execNow, legacyTables, readLegacyTable, readSysctl } from '../../../sys/index.ts';
import { IpSetMembers, KernelChains, LegacyRules, type LegacyTables } from '../../iptables/index.ts';
import { type IpvsReader, IpvsServers, reroutesAnswers } from '../../ipvs/index.ts';
import { KernelRules, NftRules } from '../../nft/index.ts';
import type { RuleSource } from '../../walk/index.ts';
import { ipsecIdleHere } from '../ipsec.ts';
import { listenersHere } from './listeners.ts';
import { packetQueuesHere } from './packet-queues.ts';
import { recentListsHere } from './recent-lists.ts';

/** All that has rules on this node for packets of a family. */
export interface RulesHere {
  readonly sources: readonly RuleSource[];
  /** What of them could not be read, so that a walk cannot be trusted; undefined: nothing. */
  readonly gap: string | undefined;
}

const IPTABLES_TABLES: ReadonlySet<string> = new Set(['raw', 'mangle', 'nat', 'filter', 'security']);

/**
 * Finds what has rules on this node for a family: nf_tables, read by key when a walk comes there; legacy iptables, which the
 * kernel gives out by whole tables, but of which only the chains are read that a walk comes to; IPVS.
 */
export function readRules(nft: Nftables, family: IpFamily): RulesHere {
  const facts = {
    ipsets: ipsetsHere(),
    changedSets: new Set<string>(),
    recent: recentListsHere(),
    isQueueHeard: packetQueuesHere(),
    isHeardAt: listenersHere(),
    isIpsecIdle: ipsecIdleHere(),
  };
  let legacy: LegacyTables | undefined;
  let gap: string | undefined;
  try {
    legacy = readLegacy(family, facts.ipsets);
  } catch (error) {
    gap = `rules of iptables (legacy) cannot be read: ${errorText(error)}`;
  }
  const sources = [
    new NftRules(new KernelRules(nft, printNftChain), facts),
    new LegacyRules({ [family]: legacy }, facts),
    ...(existsSync('/proc/thread-self/net/ip_vs') ? [new IpvsServers(ipvsHere())] : []),
  ];
  return { sources, gap };
}

/** @throws KernelError */
function readLegacy(family: IpFamily, ipsets: IpSetMembers): LegacyTables {
  const context = { family, setName: (index: number) => ipsets.nameOf(index) };
  const read = (table: string) =>
    new KernelChains(readLegacyTable(family, table), context, (chain) => printChain(family, 'legacy', table, chain));
  return new Map((legacyTables(family) ?? []).map((table) => [table, read(table)]));
}

/** Undefined: no table of iptables-nft. */
function printNftChain({ family, table, name }: ChainRef): readonly string[] | undefined {
  if ((family !== 'ip' && family !== 'ip6') || !IPTABLES_TABLES.has(table)) return undefined;
  return printChain(family === 'ip' ? 'IPv4' : 'IPv6', 'nft', table, name);
}

/**
 * The rules of a chain as a program of iptables prints them, for what of an extension cannot be read here. One chain: all of
 * them take seconds at 10,000 Services. Undefined: no such program.
 */
function printChain(
  family: IpFamily,
  variant: IptablesVariant,
  table: string,
  chain: string,
): readonly string[] | undefined {
  const printed = execNow(programName(family, variant), ['-t', table, '-S', chain]);
  return printed === undefined ? undefined : atOnce(parseList(table, chain, printed));
}

function ipsetsHere(): IpSetMembers {
  return new IpSetMembers({
    listSets: () => withNetlink(NETLINK_NETFILTER, listIpSets),
    listMembers: (name) => withNetlink(NETLINK_NETFILTER, (netlink) => listMembers(netlink, name)),
    getName: (index) => withNetlink(NETLINK_NETFILTER, (netlink) => getSetName(netlink, index)),
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
    get reroutesAnswers() {
      return reroutesAnswers(readSysctl);
    },
    get isDropping() {
      return readSysctl('net/ipv4/vs/drop_packet') === '3';
    },
    get forgetsDrained() {
      return readSysctl('net/ipv4/vs/expire_quiescent_template') === '1';
    },
  };
}
