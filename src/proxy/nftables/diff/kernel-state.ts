import { type IpFamily, yielder } from '../../../core/index.ts';
import {
  type NftChain,
  type NftElement,
  type NftReader,
  type NftRule,
  type NftSet,
  nftFamily,
} from '../../../netlink/nftables/index.ts';
import { indexedKey } from '../compile/keys.ts';
import { KUBE_PROXY_TABLE } from '../compile/names.ts';
import { ElementIndex } from './element-index.ts';
import type { SlotHints } from './groups.ts';

/** What the kernel holds of ours. */
export interface KernelState {
  /** Undefined: there is no table. */
  readonly table: KernelTable | undefined;
  /** A kube-proxy's table is there. */
  readonly kubeProxy: boolean;
  /** When this was read. */
  readonly generation: number;
}

/** Our table as it is in the kernel. */
export interface KernelTable {
  /** Somebody has put it to sleep (`flags dormant`): no packet meets its chains. @default false */
  readonly dormant?: boolean | undefined;
  readonly sets: ReadonlyMap<string, NftSet>;
  readonly chains: ReadonlyMap<string, NftChain>;
  /** In their order, by chain. */
  readonly rules: ReadonlyMap<string, readonly NftRule[]>;
  /** By set. */
  readonly elements: ReadonlyMap<string, readonly NftElement[]>;
  /** By set: where in `elements` a key is. */
  readonly indexes: ReadonlyMap<string, ElementIndex>;
}

/** Reads our table. The event loop runs in between: a large table takes a while. */
export async function readKernelState(nft: NftReader, family: IpFamily, name: string): Promise<KernelState> {
  const generation = nft.generation();
  const tables = new Map(nft.listTables(nftFamily(family)).map((table) => [table.name, table]));
  const kubeProxy = tables.has(KUBE_PROXY_TABLE);
  const present = tables.get(name);
  if (!present) return { table: undefined, kubeProxy, generation };
  const ref = { kind: 'table', family: nftFamily(family), name } as const;
  const rest = yielder();
  const rules = new Map<string, NftRule[]>();
  for (const rule of await nft.listRulesAsync(ref)) {
    const list = rules.get(rule.chain);
    if (list) list.push(rule);
    else rules.set(rule.chain, [rule]);
  }
  const sets = new Map((await nft.listSetsAsync(ref)).map((set) => [set.name, set]));
  const elements = new Map<string, NftElement[]>();
  for (const set of sets.values()) {
    if (!isAnonymous(set)) elements.set(set.name, await nft.listElementsAsync(set));
    await rest();
  }
  const chains = new Map((await nft.listChainsAsync(ref)).map((chain) => [chain.name, chain]));
  const indexes = new Map<string, ElementIndex>();
  for (const [name, list] of elements) {
    indexes.set(name, new ElementIndex(list));
    await rest();
  }
  return { table: { dormant: present.dormant, sets, chains, rules, elements, indexes }, kubeProxy, generation };
}

/** A set that belongs to a rule and goes with it. */
export function isAnonymous(set: NftSet): boolean {
  return set.flags?.includes('anonymous') ?? false;
}

/** What is in the slots already. */
export function slotHints({ indexes, elements }: KernelTable): SlotHints {
  return (set, prefix, count) => {
    const index = indexes.get(set);
    const present = elements.get(set);
    if (!index || !present) return undefined;
    return Array.from({ length: count }, (_, slot) => present[index.find({ key: indexedKey(prefix, slot) })]?.data);
  };
}
