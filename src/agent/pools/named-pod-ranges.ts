import type { KubeProxyConfig } from '../../config/index.ts';
import type { Cidr } from '../../core/index.ts';

/** Addresses of pods, on whichever node, as far as the configuration names them. */
export function namedPodRanges({
  detectLocal,
  pools,
}: Pick<KubeProxyConfig, 'detectLocal' | 'pools'>): readonly Cidr[] {
  return [...(detectLocal.mode === 'ClusterCIDR' ? detectLocal.cidrs : []), ...(pools?.cidrs ?? [])];
}
