import type { ProxyMode } from '../../proxy/index.ts';
import { HAIRPIN_CHAIN } from '../../proxy/iptables/index.ts';
import { IPVS_DEVICE } from '../../proxy/ipvs/index.ts';
import { KUBE_PROXY_TABLE, TABLE_NAME } from '../../proxy/nftables/index.ts';
import type { NodeFacts } from './node-facts.ts';
import { type RuleSets, readRuleSets } from './rule-sets.ts';

/** A proxy whose rules are on the node. */
export interface PresentProxy {
  readonly mode: ProxyMode;
  readonly by: 'nodeplane' | 'kube-proxy';
  /** What shows it, in words. */
  readonly sign: string;
}

/** Chains that nodeplane alone has in mode ipvs. */
const OUR_IPVS_CHAIN = /^KUBE-IPVS-/;

/** Whose rules make Services work here, in which mode; several while one takes over from the other. */
export async function presentProxies(node: NodeFacts): Promise<PresentProxy[]> {
  const found = [...inNftables(node), ...inIptables(await readRuleSets(node), node)];
  const byKind = new Map(found.map((proxy) => [`${proxy.mode} ${proxy.by}`, proxy]));
  return [...byKind.values()];
}

function inNftables(node: NodeFacts): PresentProxy[] {
  const { tables } = node.nftables();
  return tables.flatMap(({ family, name }): PresentProxy[] => {
    const sign = `nftables table ${family} ${name}`;
    if (family !== 'ip' && family !== 'ip6') return [];
    if (name === TABLE_NAME) return [{ mode: 'nftables', by: 'nodeplane', sign }];
    return name === KUBE_PROXY_TABLE ? [{ mode: 'nftables', by: 'kube-proxy', sign }] : [];
  });
}

function inIptables({ sets }: RuleSets, node: NodeFacts): PresentProxy[] {
  const hasDevice = node.links().some(({ name }) => name === IPVS_DEVICE);
  return sets.flatMap(({ family, variant, tables }): PresentProxy[] => {
    const nat = tables.get('nat');
    const services = nat?.get('KUBE-SERVICES');
    const sign = `iptables-${variant} ${family}, chain KUBE-SERVICES`;
    if (!nat || !services) return [];
    if (hasDevice || services.rules.some((rule) => rule.includes('--match-set KUBE-'))) {
      const names = [...nat.keys(), ...(tables.get('mangle')?.keys() ?? [])];
      return [{ mode: 'ipvs', by: names.some((name) => OUR_IPVS_CHAIN.test(name)) ? 'nodeplane' : 'kube-proxy', sign }];
    }
    // A kube-proxy removes this chain with its first sync; its own canaries stay where we have taken over.
    return [{ mode: 'iptables', by: nat.has(HAIRPIN_CHAIN) ? 'nodeplane' : 'kube-proxy', sign }];
  });
}
