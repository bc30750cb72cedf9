import type { IpFamily } from '../../core/index.ts';
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

/** A jump to a chain that nodeplane alone has in mode ipvs. */
const TO_OUR_IPVS_CHAIN = /-[jg] KUBE-IPVS-/;

/**
 * Whose rules make Services work here, in which mode; several while one takes over from the other.
 *
 * @param only looks at one family. @default at both
 */
export async function presentProxies(node: NodeFacts, only?: IpFamily): Promise<PresentProxy[]> {
  const all = [...inNftables(node), ...inIptables(await readRuleSets(node), node)];
  const found = all.filter(({ family }) => only === undefined || family === only);
  const byKind = new Map(found.map((proxy) => [`${proxy.mode} ${proxy.by}`, proxy]));
  return [...byKind.values()].map(({ mode, by, sign }) => ({ mode, by, sign }));
}

type FoundProxy = PresentProxy & { readonly family: IpFamily };

function inNftables(node: NodeFacts): FoundProxy[] {
  const { tables } = node.nftables();
  return tables.flatMap(({ family: nftFamily, name }): FoundProxy[] => {
    if (nftFamily !== 'ip' && nftFamily !== 'ip6') return [];
    const found = {
      family: nftFamily === 'ip' ? 'IPv4' : 'IPv6',
      sign: `nftables table ${nftFamily} ${name}`,
    } as const;
    if (name === TABLE_NAME) return [{ ...found, mode: 'nftables', by: 'nodeplane' }];
    return name === KUBE_PROXY_TABLE ? [{ ...found, mode: 'nftables', by: 'kube-proxy' }] : [];
  });
}

function inIptables({ sets }: RuleSets, node: NodeFacts): FoundProxy[] {
  const hasDevice = node.links().some(({ name }) => name === IPVS_DEVICE);
  return sets.flatMap(({ family, variant, tables }): FoundProxy[] => {
    const nat = tables.get('nat');
    const services = nat?.get('KUBE-SERVICES');
    const sign = `iptables-${variant} ${family}, chain KUBE-SERVICES`;
    if (!nat || !services) return [];
    if (hasDevice || services.rules.some((rule) => rule.includes('--match-set KUBE-'))) {
      // A kube-proxy writes this chain anew with its first sync, and leaves those that it does not know.
      const isOurs = nat.get('KUBE-POSTROUTING')?.rules.some((rule) => TO_OUR_IPVS_CHAIN.test(rule)) ?? false;
      return [{ family, mode: 'ipvs', by: isOurs ? 'nodeplane' : 'kube-proxy', sign }];
    }
    // A kube-proxy removes this chain with its first sync; its own canaries stay where we have taken over.
    return [{ family, mode: 'iptables', by: nat.has(HAIRPIN_CHAIN) ? 'nodeplane' : 'kube-proxy', sign }];
  });
}
