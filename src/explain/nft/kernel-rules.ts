import type { ChainRef, NftElement, NftReader, NftRule, NftSet, SetRef } from '../../netlink/nftables/index.ts';
import type { Packet } from '../packet/index.ts';
import type { Hook } from '../walk/index.ts';
import type { BaseChainOf, Rules } from './surroundings.ts';
import { hookedIn } from './tables.ts';

/**
 * The rules of a namespace as they are, read piece by piece when a walk comes to them and kept for the next way of the same
 * walk. Elements are asked for by key: no table is listed. One object for one question: it does not hear of changes.
 */
export class KernelRules implements Rules {
  readonly #reader: NftReader;
  readonly #listTexts: (chain: ChainRef) => readonly string[] | undefined;
  readonly #texts = new Map<string, readonly string[] | undefined>();
  readonly #chains = new Map<Packet['family'], readonly BaseChainOf[]>();
  readonly #rules = new Map<string, readonly NftRule[]>();
  readonly #isThere = new Map<string, boolean>();
  readonly #written = new Map<string, ReadonlySet<string | false>>();
  readonly #sets = new Map<string, readonly NftSet[]>();
  readonly #elements = new Map<string, NftElement | undefined>();

  /** @param listTexts the rules of a chain of iptables-nft, as it prints them. @default nobody can tell */
  constructor(reader: NftReader, listTexts: (chain: ChainRef) => readonly string[] | undefined = () => undefined) {
    this.#reader = reader;
    this.#listTexts = listTexts;
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

  getElement(set: SetRef, key: Uint8Array | 'catch-all'): NftElement | undefined {
    const { family, table, name } = set;
    const id = [family, table, name, key === 'catch-all' ? '*' : Buffer.from(key).toString('hex')].join('\0');
    return kept(this.#elements, id, () => this.#reader.getElement(set, key));
  }

  /** Asked only of sets that rules could write to: the rules of the whole table are listed. */
  isWritten({ family, table, name, data, flags = [] }: NftSet): boolean {
    if (data === 'verdict' || flags.some((flag) => flag === 'constant' || flag === 'interval')) return false;
    const written = kept(this.#written, [family, table].join('\0'), () => {
      const rules = this.#reader.listRules({ kind: 'table', family, name: table });
      return new Set(rules.flatMap(({ expressions }) => expressions.map((one) => one.kind === 'dynset' && one.set)));
    });
    return written.has(name);
  }

  textsOf(chain: ChainRef): readonly string[] | undefined {
    const { family, table, name } = chain;
    return kept(this.#texts, [family, table, name].join('\0'), () => this.#listTexts(chain));
  }

  hasChain(chain: ChainRef): boolean {
    const { family, table, name } = chain;
    const isThere = () => this.#reader.getChain({ ...chain, kind: 'chain' }) !== undefined;
    return kept(this.#isThere, [family, table, name].join('\0'), isThere);
  }

  /**
   * By priority. Among equals the one that was made last runs first: nf_hook_entries_grow (net/netfilter/core.c) puts it in
   * front of them, and the kernel lists tables and chains in the order in which they were made.
   */
  #listBaseChains(family: Packet['family']): readonly BaseChainOf[] {
    const seeing = ['inet', family === 'IPv4' ? 'ip' : 'ip6'];
    const based = this.#reader
      .listBaseChains()
      .filter((chain): chain is BaseChainOf => chain.base !== undefined && seeing.includes(chain.family));
    return [...hookedIn(this.#reader, based)].reverse().sort((a, b) => a.base.priority - b.base.priority);
  }
}

function kept<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  if (!map.has(key)) map.set(key, make());
  return map.get(key)!;
}
