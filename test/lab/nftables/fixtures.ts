import type { IpFamily } from '../../../src/core/index.ts';
import {
  type CommitReport,
  expressionKey,
  Nftables,
  type NftElement,
  type NftEvent,
  type NftRuleset,
  watchNftables,
} from '../../../src/netlink/nftables/index.ts';
import { ruleText } from '../../../src/netlink/nftables/text/index.ts';
import { NftablesDataplane, type NftablesDataplaneOptions, TABLE_NAME } from '../../../src/proxy/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import type { Pod } from '../lab.ts';
import { own, type TestNamespace } from '../namespace.ts';

export const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

/** The address family of nf_tables, as the `nft` program spells it. */
export const nftFamily = (family: IpFamily) => (family === 'IPv4' ? 'ip' : 'ip6');

/** Where a pod serves, as `samplePort` is told. */
export const endpointOf = (pod: Pod, family: IpFamily) =>
  family === 'IPv4' ? `${pod.ip(family)}:8080` : `[${pod.ip(family)}]:8080`;

/** nf_tables of a namespace; closed at the latest by `removeAll`. */
export function openIn(namespace: TestNamespace): NftRuleset {
  const nft = inNetns(namespace.path, () => Nftables.open());
  own(() => nft.close());
  return nft;
}

/** A dataplane that works inside a namespace; closed at the latest by `removeAll`. */
export function dataplaneIn(
  namespace: TestNamespace,
  family: IpFamily,
  options: Partial<NftablesDataplaneOptions> = {},
): NftablesDataplane {
  const dataplane = new NftablesDataplane({
    family,
    open: () => openIn(namespace),
    watch: watchIn(namespace),
    ...options,
  });
  own(() => dataplane.close());
  return dataplane;
}

/** Listens to the changes in a namespace. */
export function watchIn(namespace: TestNamespace): NonNullable<NftablesDataplaneOptions['watch']> {
  return (listener: (event: NftEvent) => void) => {
    let close = () => {};
    inNetns(namespace.path, () => {
      close = watchNftables(listener).close;
    });
    return { close: () => close() };
  };
}

/** Our table as `nft` prints it. */
export function listing(namespace: TestNamespace, family: IpFamily, table: string = TABLE_NAME): string {
  return namespace.run('nft', 'list', 'table', nftFamily(family), table);
}

/** A table as plain data, in an order that does not depend on who came first. */
export type Snapshot = Readonly<Record<string, unknown>>;

/**
 * Everything in a table. Which of the endpoints of a Service is in which slot is left to chance: they are compared as
 * a set, with the slots there are.
 */
export function snapshot(nft: NftRuleset, family: IpFamily, table: string = TABLE_NAME): Snapshot {
  const ref = { kind: 'table', family: nftFamily(family), name: table } as const;
  const result: Record<string, unknown> = {};
  for (const { name, base, comment } of nft.listChains(ref)) result[`chain ${name}`] = { base, comment, rules: [] };
  const sets = new Map(nft.listSets(ref).map((set) => [set.name, set]));
  for (const { chain, expressions, comment } of nft.listRules(ref)) {
    const text = ruleText(expressions, ref.family, (set) => sets.get(set));
    // The text is for reading; two rules of one text may differ in the registers that they use.
    (result[`chain ${chain}`] as { rules: unknown[] }).rules.push({
      text,
      comment,
      is: expressions.map(expressionKey),
    });
  }
  for (const set of sets.values()) {
    const { name, key, data, flags, size, timeoutMs, comment } = set;
    const elements = flags?.includes('dynamic') ? [] : describe(nft.listElements(set), key.at(-1) === 'mark');
    result[`set ${name}`] = { key, data, flags, size, timeoutMs, comment, elements };
  }
  return result;
}

const hex = (bytes: Uint8Array | undefined) => (bytes ? Buffer.from(bytes).toString('hex') : '');

function describe(elements: readonly NftElement[], slots: boolean): string[] {
  if (!slots) {
    return elements
      .map(({ key, keyEnd, verdict, data, comment }) =>
        [hex(key), hex(keyEnd), JSON.stringify(verdict), hex(data), comment].join(' '),
      )
      .sort();
  }
  const groups = new Map<string, { slots: string[]; endpoints: string[] }>();
  for (const { key, data } of elements) {
    const prefix = hex(key.subarray(0, -4));
    const group = groups.get(prefix) ?? { slots: [], endpoints: [] };
    group.slots.push(hex(key.subarray(-4)));
    group.endpoints.push(hex(data));
    groups.set(prefix, group);
  }
  return [...groups]
    .map(([prefix, group]) => `${prefix}: ${group.slots.sort().join(' ')} -> ${group.endpoints.sort().join(' ')}`)
    .sort();
}

/** The same ruleset, writing down what commits did. */
export function recorded(nft: NftRuleset, reports: CommitReport[]): NftRuleset {
  const note = (report: CommitReport) => {
    reports.push(report);
    return report;
  };
  return {
    commit: (changes, options) => note(nft.commit(changes, options)),
    commitAsync: async (changes, options) => note(await nft.commitAsync(changes, options)),
    generation: () => nft.generation(),
    listTables: (family) => nft.listTables(family),
    listChains: (of) => nft.listChains(of),
    getChain: (chain) => nft.getChain(chain),
    listRules: (of) => nft.listRules(of),
    listSets: (of) => nft.listSets(of),
    listChainsAsync: (of) => nft.listChainsAsync(of),
    listRulesAsync: (of) => nft.listRulesAsync(of),
    listSetsAsync: (of) => nft.listSetsAsync(of),
    listElements: (set) => nft.listElements(set),
    listElementsAsync: (set) => nft.listElementsAsync(set),
    getElement: (set, key) => nft.getElement(set, key),
    listCounters: (of) => nft.listCounters(of),
    close: () => nft.close(),
  };
}
