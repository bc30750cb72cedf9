import { FLANNEL_ANNOTATIONS, type Node, OUR_FLANNEL_ANNOTATION, type WantedAnnotations } from '../../kube/index.ts';
import type { RouteMode } from '../plan/underlay.ts';
import type { OwnEnd } from '../sync/events.ts';
import { flannelAnnotations } from './annotations.ts';

/**
 * The annotations by which nodes of flannel reach this one's pods, with a mark that they are ours. Mode `auto` is flannel's
 * vxlan: who is on the same link is reached directly all the same.
 */
export function publishedAnnotations(ends: readonly OwnEnd[], mode: RouteMode, vni: number): WantedAnnotations {
  const families = ends.map(({ address: publicIp, mac }) =>
    mode === 'host-gw' ? ({ backend: mode, publicIp } as const) : ({ backend: 'vxlan', publicIp, mac, vni } as const),
  );
  return { ...flannelAnnotations(families), [OUR_FLANNEL_ANNOTATION]: 'true' };
}

/** What is wanted of a Node when we are not to say anything in flannel's words: ours taken away, flannel's own left. */
export function withdrawnAnnotations({ metadata: { annotations = {} } }: Node): WantedAnnotations {
  if (annotations[OUR_FLANNEL_ANNOTATION] === undefined) return {};
  const names = [...Object.values(FLANNEL_ANNOTATIONS), OUR_FLANNEL_ANNOTATION];
  return Object.fromEntries(names.map((name) => [name, undefined]));
}
