import { join } from 'node:path';
import { linkFinder } from '../../../cni/index.ts';
import type { KubeProxyConfig } from '../../../config/index.ts';
import { type Cidr, errorText, parseCidr, systemClock } from '../../../core/index.ts';
import { entriesGone, journalEntries, journaledNetworks, reservations } from '../../../ipam/index.ts';
import { withNetlink } from '../../../netlink/index.ts';
import { NETLINK_ROUTE } from '../../../netlink/uapi/index.ts';
import { isConfirmed } from '../../../pools/index.ts';
import { podCidrsOf } from '../../../proxy/index.ts';
import { configuredConflist, dataDirsOf, usesNodeRanges } from '../../cni/install/configured.ts';
import { AddressUse } from '../address-use.ts';
import { livingRanges } from '../living-ranges.ts';
import { poolsOf } from '../sources/pool-ranges.ts';
import { checkAddresses, type IpamFinding, type Reserved } from './check-addresses.ts';
import { type IpamReport, ipamReport, NOT_WITHOUT_CNI } from './ipam-report.ts';
import { addressesInNamespaces } from './pod-namespaces.ts';
import { type ClusterAddresses, readCluster } from './read-cluster.ts';

/** What was found, and what could not be looked at, in words. */
export interface IpamCheck {
  readonly node: string;
  readonly findings: readonly IpamFinding[];
  readonly notLookedAt: readonly string[];
}

/**
 * The pools of the cluster, the ranges of this node, and how many addresses of them its pods have.
 *
 * @param config of this node's agent
 * @throws ERR_API, ERR_CONFIG, ERR_IPAM_STORE
 */
export async function showAddresses(config: KubeProxyConfig): Promise<IpamReport> {
  const cluster = await readCluster(config);
  const { nodeName, pools } = config;
  return ipamReport({
    ...cluster,
    nodeName,
    pools: pools && poolsOf(pools),
    podCidrs: podCidrs(config, cluster),
    living: living(config),
    use: config.cni && useIn(dataDirs(config)),
  });
}

/** By the notes of pods, as the agent finds them after a restart. */
function living({ cni }: KubeProxyConfig): readonly Cidr[] {
  const conflist = cni && configuredConflist(cni);
  return conflist && usesNodeRanges(conflist) ? livingRanges(dataDirsOf(cni, conflist), conflist.network) : [];
}

/**
 * Looks for addresses and blocks that are lost, or not safe. What the cluster's store does not tell is left out of it.
 *
 * @param config of this node's agent
 * @throws ERR_IPAM_STORE, ERR_CONFIG; errors of netlink
 */
export async function checkAddressesOf(config: KubeProxyConfig): Promise<IpamCheck> {
  const notLookedAt: string[] = [];
  let cluster: ClusterAddresses | undefined;
  try {
    cluster = await readCluster(config);
  } catch (error) {
    notLookedAt.push(`ranges of this node: ${errorText(error)}`);
  }
  const { nodeName, pools } = config;
  const dirs = dataDirs(config);
  if (!config.cni) notLookedAt.push(`reserved addresses: ${NOT_WITHOUT_CNI}`);
  const inUse = addressesInNamespaces();
  if (!inUse) notLookedAt.push('interfaces of pods: none of their network namespaces can be seen from here');
  const locations = dirs.flatMap((dataDir) => journaledNetworks(dataDir).map((network) => ({ dataDir, network })));
  const gone = withNetlink(NETLINK_ROUTE, (host) =>
    locations.flatMap((location) =>
      entriesGone(location, linkFinder(host)).map((entry) => ({ ...entry, network: location.network })),
    ),
  );
  const isGone = new Set(gone.map(({ network, name }) => `${network}/${name}`));
  const attached = dirs.flatMap(journalEntries).filter(({ network, name }) => !isGone.has(`${network}/${name}`));
  const findings = checkAddresses({
    nodeName,
    reserved: config.cni && dirs.flatMap(reservedIn),
    attached,
    gone,
    inUse,
    ranges: cluster ? rangesOf(config, cluster) : [],
    serviceRanges: cluster?.serviceRanges ?? [],
    pools: pools?.cidrs ?? [],
    cluster: pools && cluster,
    blocksAreGiven: config.manifests !== '',
    use: config.cni && useIn(dirs),
  });
  return { node: nodeName, findings, notLookedAt };
}

function reservedIn(dataDir: string): Reserved[] {
  return reservations(dataDir).map(({ address, network, fileName, content }) => ({
    address,
    network,
    path: join(dataDir, network, fileName),
    owner: content.trim().replace(/\s+/g, ' '),
  }));
}

function rangesOf(config: KubeProxyConfig, cluster: ClusterAddresses): readonly Cidr[] {
  if (!config.pools) return podCidrs(config, cluster);
  const own = cluster.blocks.filter(({ spec }) => spec.node === config.nodeName && isConfirmed(spec));
  return own.map(({ spec }) => parseCidr(spec.cidr));
}

function podCidrs({ cni }: KubeProxyConfig, { node }: ClusterAddresses): readonly Cidr[] {
  return cni?.podCidrs.length ? cni.podCidrs : podCidrsOf(node);
}

/** Where pods of a node without a CNI part of ours have their addresses is not known. */
function dataDirs({ cni }: KubeProxyConfig): readonly string[] {
  return cni ? dataDirsOf(cni, configuredConflist(cni)) : [];
}

function useIn(dirs: readonly string[]): AddressUse['of'] {
  const failed = (error: unknown) => {
    throw error;
  };
  const use = new AddressUse({ dataDirs: dirs, clock: systemClock, failed });
  return (range) => use.of(range);
}
