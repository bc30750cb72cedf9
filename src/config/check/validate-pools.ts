import { POD_CIDR_SOURCES, type PoolsConfig } from '../file/kube-proxy-config.ts';
import type { Configuration } from '../file/schema.ts';
import { type Problems, shown } from '../problems.ts';
import { readCidrs } from './validate-addresses.ts';

/** A fence of two thirds of it has to be longer than the API server is away while it is upgraded. */
const LEAST_RECLAIM_MS = 3 * 60_000;

/** Nothing but the source is checked where it is `node`. Whether pools overlap, and blocks fit in, the pools say themselves. */
export function readPools({ nodeplane, detectLocalMode }: Configuration, problems: Problems): PoolsConfig | undefined {
  const { podCIDRsFrom, cidrs: texts, blockSize, blockSizeIPv6, reclaimAfter } = nodeplane.pools;
  const from = 'nodeplane.pools.podCIDRsFrom';
  if (problems.oneOf(from, podCIDRsFrom, POD_CIDR_SOURCES) === 'node') return undefined;
  const cidrs = readCidrs('nodeplane.pools.cidrs', texts ?? [], problems);
  if (cidrs.length === 0 && !texts?.length)
    problems.add('nodeplane.pools.cidrs', '"" is empty: name the pools of the cluster');
  problems.inRange('nodeplane.pools.blockSize', blockSize, 8, 30);
  problems.inRange('nodeplane.pools.blockSizeIPv6', blockSizeIPv6, 64, 126);
  if (reclaimAfter < LEAST_RECLAIM_MS) {
    const given = shown('nodeplane.pools.reclaimAfter', reclaimAfter);
    problems.add('nodeplane.pools.reclaimAfter', `${given} must not be less than 3m`);
  }
  if (!nodeplane.cni.enabled)
    problems.add(from, '"pool" is for nodes whose pods get their network from --cni: switch that on, or give "node"');
  if (nodeplane.cni.podCIDRs?.length) {
    const given = nodeplane.cni.podCIDRs.join(',');
    problems.add('nodeplane.cni.podCIDRs', `"${given}" are the pools’ to give: leave it out`);
  }
  if (detectLocalMode === 'NodeCIDR') {
    problems.add(
      'detectLocalMode',
      '"NodeCIDR" looks at the podCIDRs of the Node object, which pools do not write: use ClusterCIDR',
    );
  }
  return { cidrs, blockSizes: { IPv4: blockSize, IPv6: blockSizeIPv6 }, reclaimMs: reclaimAfter };
}
