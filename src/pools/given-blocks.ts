import type { PodCIDRBlock } from '../kube/index.ts';
import { isConfirmed } from './block-view.ts';

/**
 * The ranges that a node may use where blocks come from manifests: nobody claims or renews them there, and whoever writes
 * the manifests sees to it that no range is given twice.
 *
 * @param blocks of all nodes
 * @returns sorted, as text
 */
export function blocksGiven(blocks: Iterable<PodCIDRBlock>, node: string): readonly string[] {
  const given = [...blocks].filter(({ spec }) => spec.node === node && isConfirmed(spec));
  return given.map(({ spec }) => spec.cidr).sort();
}
