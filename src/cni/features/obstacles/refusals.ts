import { IP_FAMILIES, type IpFamily } from '../../../core/index.ts';
import {
  type ChainRef,
  type NftChain,
  type NftFamily,
  type NftReader,
  nftFamily,
} from '../../../netlink/nftables/index.ts';
import { type ForAll, refusingChain } from '../../../nft/index.ts';
import { legacyTableInUse } from '../../../sys/index.ts';
import { forwardChain } from '../tables/forward-rules.ts';
import { legacyRefuses } from './legacy-rule.ts';
import { ruleForPackets } from './nft-rule.ts';
import { distinctPackets, type PodPackets } from './packets.ts';

/** Where some of the packets asked about are dropped or rejected, all of their kind. */
export interface Refusal {
  /** Who has the table: iptables, by the kernel's nf_tables or by its own, or another program. */
  readonly owner: 'iptables-nft' | 'iptables-legacy' | 'nftables';
  readonly family: NftFamily;
  readonly table: string;
  /** The chain at hook forward. */
  readonly base: string;
  /** The one that refuses them, by its policy or a rule: the same, or one that it leads them to. */
  readonly chain: string;
}

/** How much is read. Chains that take more are passed over, and what follows them is read. */
export interface ReadLimits {
  readonly rules: number;
  readonly chains: number;
  /** Of a table of legacy iptables: a rule takes some 200. */
  readonly bytes: number;
}

/**
 * All refusals of these packets that chains at hook forward come to, those of nodeplane's own tables and of kube-proxy's left out.
 * Chains whose rules let all of the packets through are none, nor those that take too long to be read.
 *
 * @throws KernelError, ERR_NETLINK_DUMP_INTERRUPTED
 */
export function refusalsOf(ruleset: NftReader, all: readonly PodPackets[], limits: ReadLimits): Refusal[] {
  const packets = distinctPackets(all);
  const families = IP_FAMILIES.filter((family) => packets.some((one) => familyOf(one) === family));
  if (families.length === 0) return [];
  const chains = new ReadChains(ruleset, limits);
  const inIptables = families
    .flatMap((family) => ruleset.getChain(forwardChain(family, 'FORWARD')) ?? [])
    .flatMap((forward) => chains.refusals('iptables-nft', forward, packets));
  const ofOthers = foreignChains(ruleset, families)
    .filter(({ base }) => base?.hook === 'forward' && base.type === 'filter')
    .flatMap((base) => chains.refusals('nftables', base, packets));
  return [...ofOthers, ...inIptables, ...families.flatMap((family) => refusalsOfLegacy(family, packets, limits))];
}

function refusalsOfLegacy(family: IpFamily, packets: readonly PodPackets[], { bytes }: ReadLimits): Refusal[] {
  const filter = legacyTableInUse(family, 'filter', bytes);
  const refuses = filter && packets.some((one) => familyOf(one) === family && legacyRefuses(filter, one));
  return refuses
    ? [{ owner: 'iptables-legacy', family: nftFamily(family), table: 'filter', base: 'FORWARD', chain: 'FORWARD' }]
    : [];
}

/** Chains of the kernel, each read once. */
class ReadChains {
  readonly #ruleset: NftReader;
  readonly #read = new Map<string, ReturnType<NftReader['listRules']>>();
  #rulesLeft: number;
  readonly #mostChains: number;

  constructor(ruleset: NftReader, { rules, chains }: ReadLimits) {
    this.#ruleset = ruleset;
    this.#rulesLeft = rules;
    this.#mostChains = chains;
  }

  /** The chains in which a base chain refuses some of the packets, each once. */
  refusals(owner: Refusal['owner'], base: NftChain, packets: readonly PodPackets[]): Refusal[] {
    const { family, table, name } = base;
    const seen = packets.filter((one) => family === 'inet' || family === nftFamily(familyOf(one)));
    const refusing = new Set(seen.flatMap((one) => this.#refusing(base, one) ?? []));
    return [...refusing].map((chain) => ({ owner, family, table, base: name, chain }));
  }

  /** Undefined: none does, or there is too much to be read. */
  #refusing(base: NftChain, packets: PodPackets): string | undefined {
    return refusingChain(base.name, (name) => this.#rulesOf(base, name, packets));
  }

  *#rulesOf(base: NftChain, name: string, packets: PodPackets): Generator<ForAll | undefined> {
    const { family, table } = base;
    for (const rule of this.#rules({ kind: 'chain', family, table, name })) {
      yield ruleForPackets(rule, packets, this.#ruleset);
    }
    if (name === base.name && base.base?.policy === 'drop') yield { kind: 'refuse' };
  }

  #rules(chain: ChainRef): ReturnType<NftReader['listRules']> {
    const key = `${chain.family} ${chain.table} ${chain.name}`;
    const known = this.#read.get(key);
    if (known) return known;
    // A list of banned addresses, for one, is passed over, and what follows it is read.
    const isTooMuch =
      this.#read.size >= this.#mostChains || (this.#ruleset.getChain(chain)?.use ?? 0) > this.#rulesLeft;
    const rules = isTooMuch ? [] : this.#ruleset.listRules(chain);
    this.#rulesLeft -= rules.length;
    this.#read.set(key, rules);
    return rules;
  }
}

/** Tables of nf_tables whose chains are not looked through: a proxy may have them by the thousand, and no ADD has time for that. */
const PASSED_BY = /^(?:filter|nat|mangle|raw|security|kube-proxy|nodeplane.*)$/;
/** The kernel lists the chains of all tables of a family only: with more in them the others are not looked through either. */
const LONGEST_LISTING = 1000;

/** Chains of others that may see packets of these families, by whatever rules: those of iptables-nft's tables are looked at otherwise. */
function foreignChains(ruleset: NftReader, families: readonly IpFamily[]): NftChain[] {
  const ofFamily = families.map(nftFamily).flatMap((family) => {
    const tables = ruleset.listTables(family);
    const hasOthers = tables.some(({ name }) => !PASSED_BY.test(name));
    const isLong = tables.reduce((count, { use = 0 }) => count + use, 0) > LONGEST_LISTING;
    const ofOthers =
      hasOthers && !isLong ? ruleset.listChains(family).filter(({ table }) => !PASSED_BY.test(table)) : [];
    // By hand a table is often called as iptables calls it, and its chain in small letters.
    const byHand = ruleset.getChain({ kind: 'chain', family, table: 'filter', name: 'forward' });
    return byHand ? [...ofOthers, byHand] : ofOthers;
  });
  return [...ruleset.listChains('inet'), ...ofFamily];
}

function familyOf({ subnet }: PodPackets): IpFamily {
  return subnet.address.family;
}
