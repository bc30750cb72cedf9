import { formatIp, type IpAddress, ipEquals } from '../../../core/index.ts';
import { NUD_NOARP } from '../../../netlink/uapi/index.ts';
import { type LocalPod, type NodeView, showsToRules } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { isUnknown, type Unheard, unansweredByPod } from '../pods/asked-for.ts';
import type { Report } from '../report.ts';
import { isBridged, isSwitched } from './bridge.ts';
import { undiscovered } from './discovery.ts';
import { misled, unflooded, untakenByBridge } from './forwarding.ts';
import { unheardBy } from './next-hop.ts';
import { vlanToNode } from './vlans.ts';

/** Looks whether the client's packets leave its link, wherever they end up. */
export function sends(pod: LocalPod, to: IpAddress, goals: readonly Goal[], node: NodeView, report: Report): boolean {
  const translated = goals.some(({ ip }) => !ipEquals(ip, to));
  const [peer] = node.podsAt(formatIp(to));
  const isRouted = peer?.seenAs?.index !== pod.seenAs?.index;
  const cut = isRouted ? vlanToNode(pod, node) : undefined;
  if (cut) {
    report.fail('link', cut);
    return false;
  }
  const { seenAs } = pod;
  const isShown = seenAs !== undefined && showsToRules(seenAs, to, node);
  const isPassed = translated && isShown && goals.every(({ ip }) => !isUnknown(node.neighbour(ip, seenAs.index)));
  const found = [
    unheardBy(pod, to, { peer, asks: true, translated }, node),
    isRouted ? untakenByBridge(pod, { isPassed }, node) : undefined,
    misled(pod, { byPort: false }, node),
  ];
  const lost = found.find((one) => one?.lasts);
  if (lost) {
    report.fail('link', { code: 'neighbour', text: lost.text, remedy: lost.remedy });
    return false;
  }
  for (const text of [...found.map((one) => one?.text), locked(pod, node)])
    if (text !== undefined) report.cannotTell('link', text);
  return true;
}

/**
 * In words, what a locked port may stop; undefined: it is none, or the pod is entered for it and stays so (br_handle_frame_finish,
 * net/bridge/br_input.c).
 */
function locked({ inside, outside, seenAs }: LocalPod, node: NodeView): string | undefined {
  if (!outside?.bridgePort?.locked) return undefined;
  const entries = seenAs ? node.bridges.forwarding(seenAs.index, inside.address) : [];
  const isEntered = entries.some(({ index, state }) => index === outside.index && (state & NUD_NOARP) !== 0);
  if (isEntered && !seenAs?.vlanFiltering) return undefined;
  return `the port ${outside.name} is locked: frames of senders that are not entered for it are dropped`;
}

/** Looks whether an endpoint is found on its link and finds who connects, and whether its port lets it. Says whether not. */
export function lookAtNeighbours(asked: Asked, goal: Goal, pod: LocalPod, node: NodeView, report: Report): boolean {
  const { client } = asked;
  const switched = isSwitched(asked, goal, node);
  const [here, back] = [client.kind === 'pod' ? client.pod : undefined, goal.source];
  const entry = switched ? node.neighbourIn(here!, goal.ip) : node.neighbour(goal.ip, pod.seenAs!.index);
  const isBeside = here !== undefined && here.seenAs?.index === pod.seenAs!.index;
  const isShown = showsToRules(pod.seenAs!, goal.ip, node);
  const byPort = isBeside && (switched || isShown);
  const asker = here && back && ipEquals(back, client.ip) ? here : undefined;
  // Whom a pod has asked knows it by that.
  const asksBack = isBridged(asked, goal, pod, node) && !(switched && isUnknown(entry));
  const found = [
    unansweredByPod(pod, entry, switched ? here : undefined, node),
    unflooded(pod, entry, switched ? here : undefined),
    asksBack ? unflooded(here!, node.neighbourIn(pod, client.ip), pod) : undefined,
    undiscovered(pod, switched ? { asks: 'other pod', other: here! } : { asks: 'node', from: back }, entry, node),
    asksBack
      ? undiscovered(here!, { asks: 'other pod', other: pod }, node.neighbourIn(pod, client.ip), node)
      : undefined,
    switched ? undefined : untakenByBridge(pod, { isPassed: asksBack && !isUnknown(entry) }, node),
    misled(pod, { byPort }, node),
    byPort ? misled(here, { byPort }, node) : undefined,
    back && unheardBy(pod, back, { peer: asker, asks: false, translated: goal.masqueraded !== false }, node),
  ].filter((one) => one !== undefined);
  if (isLost(found, goal, report)) return true;
  const barred = locked(pod, node);
  if (barred !== undefined) report.cannotTellEndpoint('link', goal.address, barred);
  // Who asks first is whoever sends first, and is known to the other by that; the node's own frames go to all ports.
  const listener = switched ? pod : isBridged(asked, goal, pod, node) ? here : undefined;
  if (listener && isUnasked(listener, goal.ip)) {
    const text = `the port ${listener.outside!.name} gets no frames to all: who asks for ${listener.ip} there is not heard`;
    report.cannotTellEndpoint('link', goal.address, text);
  }
  return false;
}

/** Looks whether a pod that gets itself finds whose address rules gave it as the sender's. Says whether not. */
export function lookAtItsSender(goal: Goal, pod: LocalPod, node: NodeView, report: Report): boolean {
  const sending = { peer: undefined, asks: false, translated: true };
  const unheard = goal.source && unheardBy(pod, goal.source, sending, node);
  return isLost(unheard ? [unheard] : [], goal, report);
}

/** Tells what is in the way of an endpoint, and whether that lasts. */
function isLost(found: readonly Unheard[], { address }: Goal, report: Report): boolean {
  const lost = found.find(({ lasts }) => lasts);
  if (lost) report.failEndpoint('link', address, { code: 'neighbour', text: lost.text, remedy: lost.remedy });
  else for (const { text } of found) report.cannotTellEndpoint('link', address, text);
  return lost !== undefined;
}

/** Whether a pod does not hear other ports of its bridge ask for its address. */
function isUnasked({ outside }: LocalPod, { family }: IpAddress): boolean {
  const { broadcastFlood = true, multicastFlood = true } = outside?.bridgePort ?? {};
  return !(family === 'IPv4' ? broadcastFlood : multicastFlood);
}
