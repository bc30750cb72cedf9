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
