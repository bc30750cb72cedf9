import { type Cidr, tryParseCidr } from '../../core/index.ts';
import type { Node } from '../../kube/index.ts';
import type { World } from '../check.ts';

/** This node's. Undefined where it cannot be known. */
export async function nodeObject({ cluster }: World): Promise<Node | undefined> {
  if (cluster.origin.kind === 'none') return undefined;
  try {
    return (await cluster.objects()).node;
  } catch {
    return undefined;
  }
}

/** The ranges of pods: of this node, and of all nodes as far as flags and file name them, these included. */
export async function podRanges(
  world: World,
): Promise<{ readonly own: readonly Cidr[]; readonly all: readonly Cidr[] }> {
  const { detectLocal, cni, pools } = world.config;
  const ofNode = ((await nodeObject(world))?.spec?.podCIDRs ?? []).flatMap((text) => tryParseCidr(text) ?? []);
  const own = [...ofNode, ...(cni?.podCidrs ?? [])];
  return {
    own,
    all: [...own, ...(detectLocal.mode === 'ClusterCIDR' ? detectLocal.cidrs : []), ...(pools?.cidrs ?? [])],
  };
}
