import type { IpFamily } from '../../core/index.ts';
import type {
  ChainRef,
  NftElement,
  NftFamily,
  NftReader,
  NftRule,
  NftSet,
  SetRef,
} from '../../netlink/nftables/index.ts';
import type { SavedTable } from '../../proxy/rules/index.ts';
import type { Packet } from '../packet/index.ts';
import type { Hook } from '../walk/index.ts';
import type { BaseChainOf, Rules } from './surroundings.ts';

/**
 * The rules of a namespace as they are, read piece by piece when a walk comes to them and kept for the next way of the same
 * walk. Elements are asked for by key: no table is listed. One object for one question: it does not hear of changes.
 */
export class KernelRules implements Rules {
  readonly #reader: NftReader;
  /** By the family of their tables: iptables-nft has none of family inet. */
  readonly #saved: { readonly [family in NftFamily]?: ReadonlyMap<string, SavedTable> | undefined };
  readonly #chains = new Map<Packet['family'], readonly BaseChainOf[]>();
  readonly #rules = new Map<string, readonly NftRule[]>();
  readonly #sets = new Map<string, readonly NftSet[]>();
  readonly #elements = new Map<string, NftElement | undefined>();

  /** @param saved what `iptablesTool(family, 'nft', …).saveAll()` read, for each family where that can be asked */
  constructor(reader: NftReader, saved: { readonly [family in IpFamily]?: ReadonlyMap<string, SavedTable> } = {}) {
    this.#reader = reader;
    this.#saved = { ip: saved.IPv4, ip6: saved.IPv6 };
  }

  baseChains(hook: Hook, family: Packet['family']): readonly BaseChainOf[] {
    const all = kept(this.#chains, family, () => this.#listBaseChains(family));
    return all.filter(({ base }) => base.hook === hook);
  }

  rulesOf(chain: ChainRef): readonly NftRule[] {
    const { family, table, name } = chain;
    return kept(this.#rules, [family, table, name].join('\0'), () =>
      this.#reader.listRules({ ...chain, kind: 'chain' }),
    );
  }

  getSet({ family, table, name }: SetRef): NftSet | undefined {
    const sets = kept(this.#sets, [family, table].join('\0'), () =>
      this.#reader.listSets({ kind: 'table', family, name: table }),
    );
    return sets.find((set) => set.name === name);
  }

  getElement(set: SetRef, key: Uint8Array): NftElement | undefined {
    const { family, table, name } = set;
    const id = [family, table, name, Buffer.from(key).toString('hex')].join('\0');
    return kept(this.#elements, id, () => this.#reader.getElement(set, key));
  }

  textsOf({ family, table, name }: ChainRef): readonly string[] | undefined {
    return this.#saved[family]?.get(table)?.get(name)?.rules;
  }

  hasChain({ family, table, name }: ChainRef): boolean {
    return this.#saved[family]?.get(table)?.has(name) ?? false;
  }

  /**
   * By priority. Among equals the one that was made last runs first: nf_hook_entries_grow (net/netfilter/core.c) puts it in
   * front of them, and the kernel lists tables and chains in the order in which they were made.
   */
  #listBaseChains(family: Packet['family']): readonly BaseChainOf[] {
    const seeing = ['inet', family === 'IPv4' ? 'ip' : 'ip6'];
    const based = this.#reader
      .listChains()
      .filter((chain): chain is BaseChainOf => chain.base !== undefined && seeing.includes(chain.family));
    return based.reverse().sort((a, b) => a.base.priority - b.base.priority);
  }
}

function kept<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  if (!map.has(key)) map.set(key, make());
  return map.get(key)!;
}
