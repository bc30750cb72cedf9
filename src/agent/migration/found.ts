import type { KubeProxyConfig } from '../../config/index.ts';
import { presentNetworks, presentProxies, readRuleSets, type World } from '../../preflight/index.ts';
import type { ProxyMode } from '../../proxy/index.ts';

/** Something that the node has, and what shows it. */
export interface Found {
  /** `kube-proxy iptables`, `flannel`, `portmap`; of ours `nodeplane nftables`. */
  readonly name: string;
  /** In words. */
  readonly sign: string;
}

/** Who does the node's work, by what is in the kernel. */
export interface FoundOnNode {
  /** Of others, and the agent as configured does the same work. */
  readonly theirs: readonly Found[];
  /** Rules of Services of nodeplane. */
  readonly ours: readonly Found[];
  /** Rules that cannot be read, and why, in words: there may be more. */
  readonly unread: readonly string[];
}

/** What of the configuration says which work is ours; Services always are. */
export type Work = Pick<KubeProxyConfig, 'cni' | 'routes'>;

/** Looks whose rules and devices are here. Changes nothing. */
export async function lookAtNode(node: World['node'], work: Work): Promise<FoundOnNode> {
  const proxies = await presentProxies(node);
  const named = proxies.map(({ by, mode, sign }) => ({ by, name: nameOf(by, mode), sign }));
  const networks = (await presentNetworks(node)).filter(({ kind }) =>
    kind === 'flannel' ? work.routes !== undefined : work.cni !== undefined,
  );
  const ofBy = (wanted: 'nodeplane' | 'kube-proxy') =>
    named.filter(({ by }) => by === wanted).map(({ name, sign }) => ({ name, sign }));
  return {
    theirs: [...ofBy('kube-proxy'), ...networks.map(({ kind, sign }) => ({ name: kind, sign }))],
    ours: ofBy('nodeplane'),
    unread: (await readRuleSets(node)).unread,
  };
}

function nameOf(by: string, mode: ProxyMode): string {
  return `${by} ${mode}`;
}
