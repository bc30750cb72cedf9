import { errorText } from '../../../core/index.ts';
import type { LinkChain, Nftables } from '../../../netlink/nftables/index.ts';
import { ebtablesWithRules } from '../../../sys/index.ts';
import { hookedIn, isOwnTable, rulesAreHarmless } from '../../nft/index.ts';
import { arpChains } from './arp-rules.ts';

// Rules that packets meet beside the hooks of their host, and that no walk knows.

/** Some of them. */
export interface LinkRules {
  /** `table bridge filter, chain forward (in bridges)`. */
  readonly place: string;
  readonly source: 'nftables' | 'arptables-legacy' | 'ebtables-legacy';
  /** A command line that shows them. */
  readonly show: string;
  /** What meets them: what links carry, what bridges switch, or who asks for addresses of IPv4, of this node or past it. */
  readonly of: 'links' | 'bridges' | 'ARP' | 'switched ARP';
  /** Names of links; one that ends with `*` is the beginning of names. Undefined: all that carry such packets. */
  readonly links: readonly string[] | undefined;
}

/**
 * Those of the calling thread's namespace, our own and those that let all through left out: chains of nf_tables on
 * links (`ingress`, `egress`), in bridges and for ARP, legacy arptables and ebtables.
 *
 * @throws what reading nf_tables throws
 */
export function linkRulesHere(nft: Nftables): LinkRules[] {
  const chains = hookedIn(
    nft,
    nft.listLinkChains().filter((chain) => !isOwnTable(chain.table) && !letsAllThrough(nft, chain)),
  );
  return [...chains.map(ofNftables), ...ofArptables(), ...ebtablesWithRules().map(ofEbtables)];
}

function letsAllThrough(nft: Nftables, { family, table, name, policy }: LinkChain): boolean {
  return policy !== 'drop' && rulesAreHarmless(nft, { kind: 'chain', family, table, name });
}

function ofNftables({ family, table, name, links }: LinkChain): LinkRules {
  const of = family === 'arp' ? 'ARP' : links ? 'links' : 'bridges';
  const where = links ? `on ${links.slice(0, 3).join(', ')}` : of === 'ARP' ? 'of ARP' : 'in bridges';
  return {
    place: `table ${family} ${table}, chain ${name} (${where})`,
    source: 'nftables',
    show: `nft list chain ${family} ${table} ${name}`,
    of,
    links,
  };
}

function ofArptables(): LinkRules[] {
  const source = 'arptables-legacy';
  try {
    return arpChains().map(({ name, links }) => ({
      source,
      place: `arptables (legacy), chain ${name}`,
      show: `arptables-legacy -L ${name}`,
      of: name === 'FORWARD' ? 'switched ARP' : 'ARP',
      links,
    }));
  } catch (error) {
    const place = `arptables (legacy), which cannot be read: ${errorText(error)}`;
    return [{ source, place, show: 'arptables-legacy -L', of: 'ARP', links: undefined }];
  }
}

/** The table may be another namespace's. */
function ofEbtables(table: string): LinkRules {
  return {
    place: `ebtables (legacy), table ${table} (in bridges, unless it is another network namespace's)`,
    source: 'ebtables-legacy',
    show: `ebtables-legacy -t ${table} -L`,
    of: 'bridges',
    links: undefined,
  };
}
