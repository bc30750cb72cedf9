import { formatIp, type IpFamily } from '../../../core/index.ts';
import type { Knowledge } from '../../knowledge/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Question } from '../../question/index.ts';

/**
 * The pod of this node that a question names as its source, as it is known by its address of another family; undefined:
 * it is none, or has none.
 */
export function twinOf(
  source: Question['source'],
  knowledge: Knowledge,
  family: IpFamily,
  node: NodeView,
): LocalPod | undefined {
  const named = source.kind === 'address' ? [formatIp(source.address)] : (knowledge.source?.addresses ?? []);
  const namespaces = new Set(named.flatMap((ip) => node.podsAt(ip)).map(({ netns }) => netns));
  return node.localPods(family).find(({ netns }) => namespaces.has(netns));
}
