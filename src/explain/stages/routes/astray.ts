import { formatIp, type IpAddress } from '../../../core/index.ts';
import type { Link } from '../../../netlink/route/index.ts';
import type { CauseCode } from '../../answer/index.ts';
import { type LocalPod, type NodeView, showsToRules } from '../../node/index.ts';
import type { Asked } from '../asked.ts';
import { showingRules } from '../commands.ts';
import type { Finding } from '../report.ts';

/** Packets of a flow that rules or policy routing may lead another way than the first one. */
export interface LaterPackets {
  /** Of those that are led past whom they are for. */
  readonly code: CauseCode;
  /** `answers`, in words. */
  readonly who: string;
  readonly to: IpAddress;
}

/**
 * What is said of packets that do not come to whom they are for; undefined: they do.
 *
 * @param outInterface undefined: there is no route
 * @param pod whom they are for, where that is a pod of this node
 */
export function ledAstray(
  { code, who, to }: LaterPackets,
  { mark, outInterface }: { readonly mark: number | undefined; readonly outInterface: number | undefined },
  pod: LocalPod | undefined,
  { target }: Asked,
  node: NodeView,
): Finding | undefined {
  const marked = markedWith(mark, who);
  const remedy = routeRemedy(to, mark);
  if (outInterface === undefined) return { code, text: `${marked} have no route to ${formatIp(to)}`, remedy };
  const beside = besidePods(pod?.outside ? [pod] : [], outInterface, target, node);
  if (!beside) return undefined;
  return { code, text: `${marked} leave by ${beside.link.name}, and ${beside.pod} hangs on ${beside.own}`, remedy };
}

/**
 * Pods none of which has its pair where a link leads: the address, the pair's end here, whether a bridge has that, and
 * the link. Undefined: one has.
 */
export function besidePods(
  pods: readonly LocalPod[],
  outInterface: number,
  target: Asked['target'],
  node: NodeView,
): { readonly pod: string; readonly own: string; readonly isPlugged: boolean; readonly link: Link } | undefined {
  const [pod] = pods;
  const link = node.link(outInterface);
  if (!pod || !link || pods.some((one) => leadsTo(one, link, target, node))) return undefined;
  const { name, master } = pod.outside!;
  return { pod: pod.ip, own: name, isPlugged: master !== 0, link };
}

/**
 * Whether what leaves by a link comes to the pod's pair: by its bridge, or what is plugged into that for a VLAN, or by the pair itself.
 * Where rules see the frames of the bridge, what was translated for a Service is tracked there once more, as another flow that is in
 * the way of the first one's answers.
 */
function leadsTo({ outside, seenAs }: LocalPod, link: Link, { ip, service }: Asked['target'], node: NodeView): boolean {
  if (link.index === outside?.index || link.index === seenAs?.index) return true;
  if (seenAs?.kind !== 'bridge') return false;
  if (link.kind === 'vlan') return link.peerIndex === seenAs.index;
  const isPlugged =
    link.kind === 'veth' && link.peerNetnsId === undefined && node.link(link.peerIndex)?.master === seenAs.index;
  return isPlugged && !(service && showsToRules(seenAs, ip, node));
}

/**
 * Whose packets, with the mark they have: `this node, marked 0x4000,`.
 *
 * @param mark 0: none, where others of the connection have one
 */
export function markedWith(mark: number | undefined, who: string): string {
  if (mark === undefined) return who;
  return mark === 0 ? `${who}, without a mark,` : `${who}, marked 0x${mark.toString(16)},`;
}

/** Commands that show which policy rules there are, and which route packets to an address with the mark take. */
export function routeRemedy(to: IpAddress, mark: number | undefined): readonly string[] {
  return [showingRules(to.family), `ip route get ${formatIp(to)}${mark ? ` mark ${mark}` : ''}`];
}
