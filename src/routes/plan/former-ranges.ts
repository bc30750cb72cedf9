import { type Cidr, cidrCovers, formatCidr, type IpFamily, tryParseCidr } from '../../core/index.ts';
import { FORMER_POD_CIDRS_ANNOTATION, type Node, podCidrTexts, type WantedAnnotations } from '../../kube/index.ts';
import { LIMITS } from './limits.ts';

/*
 * A Node that is deleted and registered again may get other pod CIDRs, while pods of before live on. Its agent names their ranges
 * in an annotation, and the other nodes go on routing them until the last of those pods is gone, or another Node has the range.
 */

/** What a Node's annotation says in one family, each range once; what cannot be read is left out. */
export function readFormerRanges(annotations: Readonly<Record<string, string>>, family: IpFamily): readonly Cidr[] {
  const text = annotations[FORMER_POD_CIDRS_ANNOTATION];
  if (text === undefined) return NONE;
  const ranges = new Map<string, Cidr>();
  for (const each of text.split(',', LIMITS.formerRangesOfPeer)) {
    const range = tryParseCidr(each);
    if (range?.address.family === family) ranges.set(formatCidr(range), range);
  }
  return [...ranges.values()];
}

/**
 * Whether a range is of pods, whoever names it: a node may write its own annotations, and could otherwise have packets to any
 * address sent to it.
 *
 * @param podRanges addresses of the cluster's pods
 */
export function isPodRange(named: Cidr, podRanges: readonly Cidr[]): boolean {
  return podRanges.some((range) => cidrCovers(range, named));
}

/**
 * What is wanted of this node's own Node.
 *
 * @param held the ranges that its pods may have addresses of
 */
export function formerRangesWanted(node: Node, held: readonly string[]): WantedAnnotations {
  const { annotations = {} } = node.metadata;
  const present = new Set(podCidrTexts(node).map(textOf));
  const former = held.filter((text) => !present.has(text));
  if (former.length > 0) return { [FORMER_POD_CIDRS_ANNOTATION]: former.join() };
  return annotations[FORMER_POD_CIDRS_ANNOTATION] === undefined ? {} : { [FORMER_POD_CIDRS_ANNOTATION]: undefined };
}

function textOf(text: string): string {
  const range = tryParseCidr(text);
  return range ? formatCidr(range) : text;
}

const NONE: readonly Cidr[] = [];
