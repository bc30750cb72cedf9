import type { KubeProxyConfig } from '../../../config/index.ts';
import { type Cidr, systemClock, tryParseCidr } from '../../../core/index.ts';
import {
  type Node,
  nodeNamed,
  POD_CIDR_BLOCKS,
  type PodCIDRBlock,
  readOnce,
  SERVICE_CIDRS,
} from '../../../kube/index.ts';
import { createLogger } from '../../logger.ts';
import { createClient, createSource } from '../../object-source.ts';

/** What the cluster's store says about pod addresses. */
export interface ClusterAddresses {
  /** This node's; undefined: there is none. */
  readonly node: Node | undefined;
  /** Of all nodes; empty where nodes do not share pools. */
  readonly blocks: readonly PodCIDRBlock[];
  /** Of Services; empty where they may not be read, and of a cluster without ServiceCIDRs. */
  readonly serviceRanges: readonly Cidr[];
}

const PATIENCE_MS = 15_000;

/**
 * Reads it once, from where the agent reads its objects.
 *
 * @throws ERR_CONFIG when there is no way to the API server, ERR_API when it does not answer in time or cannot be read
 */
export async function readCluster(config: KubeProxyConfig): Promise<ClusterAddresses> {
  const clock = systemClock;
  const observe = () => {};
  const client = await createClient({ config, clock, observe, userAgent: 'nodeplane-ipam' });
  const node = { ...nodeNamed(config.nodeName), essential: true };
  const resources = [node, SERVICE_CIDRS, ...(config.pools ? [POD_CIDR_BLOCKS] : [])];
  const { source } = createSource({ config, clock, logger: createLogger(config.logging), observe, client, resources });
  try {
    const { objects: all } = await readOnce(source, 'the blocks of pod addresses', PATIENCE_MS);
    return {
      node: all.find((object): object is Node => object.kind === 'Node' && object.metadata.name === config.nodeName),
      blocks: all.filter((object): object is PodCIDRBlock => object.kind === 'PodCIDRBlock'),
      serviceRanges: all
        .flatMap((object) => (object.kind === 'ServiceCIDR' ? (object.spec?.cidrs ?? []) : []))
        .flatMap((text) => tryParseCidr(text) ?? []),
    };
  } finally {
    client?.close();
  }
}
