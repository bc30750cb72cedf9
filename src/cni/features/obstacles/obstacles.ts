import { type IpFamily, NodeplaneError } from '../../../core/index.ts';
import { type ChainRef, type NftChain, type NftReader, nftFamily } from '../../../netlink/nftables/index.ts';
import { type ForAll, refusingChain } from '../../../nft/index.ts';
import { legacyTableInUse } from '../../../sys/index.ts';
import { forwardChain } from '../tables/forward-rules.ts';
import { IP_FAMILIES } from '../tables/pod-table.ts';
import { legacyRefuses } from './legacy-rule.ts';
import { ruleForPackets } from './nft-rule.ts';
import { distinctPackets, type PodPackets } from './packets.ts';

/**
 * What one look reads at most: an ADD of the plugin alone waits for it, and in the agent the event loop does. 90 chains of five rules took 14 ms, 9,000
 * rules 200; what firewalld leads forwarded packets through is a few dozen.
 */
const MOST_RULES = 200;
const MOST_CHAINS = 30;
/** Nor a table of legacy iptables that is larger: a rule takes some 200 bytes. */
const MOST_BYTES = 200_000;

/**
 * A sentence for each chain that may drop these packets and cannot be changed from here: of iptables-nft, of other programs' tables, of
 * legacy iptables. Chains whose rules let all of them through are none, nor those that take too long to be read.
 *
 * @throws KernelError, ERR_NETLINK_DUMP_INTERRUPTED
 */
export function obstaclesTo(ruleset: NftReader, all: readonly PodPackets[]): string[] {
  const packets = distinctPackets(all);
  const families = IP_FAMILIES.filter((family) => packets.some((one) => familyOf(one) === family));
  if (families.length === 0) return [];
  const chains = new ReadChains(ruleset);
  const refusing = families.flatMap((family) => refusalsOfIptables(chains, family, packets));
  return [...foreignRefusals(chains, ruleset, families, packets), ...refusing, ...refusalsOfLegacy(packets)];
}

function refusalsOfLegacy(packets: readonly PodPackets[]): string[] {
  return IP_FAMILIES.flatMap((family) => {
    const ofFamily = packets.filter((one) => familyOf(one) === family);
    const filter = ofFamily.length > 0 ? legacyTableInUse(family, 'filter', MOST_BYTES) : undefined;
    if (!filter || !ofFamily.some((one) => legacyRefuses(filter, one))) return [];
    return [
      `Chain FORWARD of legacy iptables (${family}) drops what it does not accept itself, and cannot be changed by netlink; have it accept the pods' addresses or use iptables-nft`,
    ];
  });
}

/**
 * What is only told may be left untold: other ADDs, for one, change the ruleset all the time while many pods start together. Undefined
 * then.
 */
export function unlessChanging(tell: () => string[]): string[] | undefined {
  try {
    return tell();
  } catch (error) {
    if (error instanceof NodeplaneError && error.code === 'ERR_NETLINK_DUMP_INTERRUPTED') return undefined;
    throw error;
  }
}

/**
 * Firewalls refuse by chains of their own what FORWARD leads there before it leads packets to rules of ours. A refusal of FORWARD
 * itself is none: the jump to ours is put before it.
 */
function refusalsOfIptables(chains: ReadChains, family: IpFamily, packets: readonly PodPackets[]): string[] {
  const forward = forwardChain(family, 'FORWARD');
  return distinct(packets, family, (one) => chains.refusing(forward, one))
    .filter((chain) => chain !== forward.name)
    .map(
      (chain) =>
        `Chain FORWARD of iptables-nft (${family}) leads what it does not accept before to chain "${chain}", which refuses it; have the firewall that made it accept the pods' addresses`,
    );
}

function foreignRefusals(
  chains: ReadChains,
  ruleset: NftReader,
  families: readonly IpFamily[],
  packets: readonly PodPackets[],
): string[] {
  return foreignChains(ruleset, families).flatMap((base) => {
    if (base.base?.hook !== 'forward' || base.base.type !== 'filter') return [];
    const ofTable = families.filter((family) => base.family === 'inet' || base.family === nftFamily(family));
    const refusing = ofTable.flatMap((family) => distinct(packets, family, (one) => chains.refusing(base, one)));
    return [...new Set(refusing)].map((chain) =>
      chain === base.name
        ? `Chain "${chain}" of the nftables table "${base.family} ${base.table}" drops what it does not accept itself; have it accept the pods' addresses`
        : `Chain "${chain}" of the nftables table "${base.family} ${base.table}" refuses packets of pods; have the firewall that made it accept the pods' addresses (nodeplane preflight names its commands)`,
    );
  });
}

/** The chains that refuse packets of a family, each once. */
function distinct(
  packets: readonly PodPackets[],
  family: IpFamily,
  refusing: (one: PodPackets) => string | undefined,
): string[] {
  return [...new Set(packets.flatMap((one) => (familyOf(one) === family ? (refusing(one) ?? []) : [])))];
}

/** Chains of the kernel, each read once. */
class ReadChains {
  readonly #ruleset: NftReader;
  readonly #read = new Map<string, ReturnType<NftReader['listRules']>>();
  #rulesLeft = MOST_RULES;

  constructor(ruleset: NftReader) {
    this.#ruleset = ruleset;
  }

  /** The chain in which a base chain refuses packets, by its policy too; undefined: none does, or there is too much to be read. */
  refusing(base: NftChain | ChainRef, packets: PodPackets): string | undefined {
    return refusingChain(base.name, (name) => this.#rulesOf(base, name, packets));
  }

  *#rulesOf(base: NftChain | ChainRef, name: string, packets: PodPackets): Generator<ForAll | undefined> {
    const { family, table } = base;
    for (const rule of this.#rules({ kind: 'chain', family, table, name })) {
      yield ruleForPackets(rule, packets, this.#ruleset);
    }
    if (name === base.name && 'base' in base && base.base?.policy === 'drop') yield { kind: 'refuse' };
  }

  #rules(chain: ChainRef): ReturnType<NftReader['listRules']> {
    const key = `${chain.family} ${chain.table} ${chain.name}`;
    const known = this.#read.get(key);
    if (known) return known;
    // A list of banned addresses, for one, is passed over, and what follows it is read.
    const isTooMuch = this.#read.size >= MOST_CHAINS || (this.#ruleset.getChain(chain)?.use ?? 0) > this.#rulesLeft;
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
