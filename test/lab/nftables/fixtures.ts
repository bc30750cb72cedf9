import type { IpFamily } from '../../../src/core/index.ts';
import {
  type CommitReport,
  Nftables,
  type NftEvent,
  type NftRuleset,
  nftFamily,
  watchNftables,
} from '../../../src/netlink/nftables/index.ts';
import { NftablesDataplane, type NftablesDataplaneOptions, TABLE_NAME } from '../../../src/proxy/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import type { Pod } from '../lab.ts';
import { own, type TestNamespace } from '../namespace.ts';

export const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

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
      close = watchNftables(listener, { withoutOwn: true }).close;
    });
    return { close: () => close() };
  };
}

/** Our table as `nft` prints it. */
export function listing(namespace: TestNamespace, family: IpFamily, table: string = TABLE_NAME): string {
  return namespace.run('nft', 'list', 'table', nftFamily(family), table);
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
    byProgram: (transactions, run) => nft.byProgram(transactions, run),
    generation: () => nft.generation(),
    listTables: (family) => nft.listTables(family),
    listChains: (of) => nft.listChains(of),
    listBaseChains: () => nft.listBaseChains(),
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
