import { formatIp, formatMac, ipEquals, sameBytes, shellWord } from '../../../core/index.ts';
import type { Link } from '../../../netlink/route/index.ts';
import { IFF_NOARP, NUD_NOARP, NUD_PERMANENT, RTN_LOCAL } from '../../../netlink/uapi/index.ts';
import { type LocalPod, type NodeView, rivalOf, showsToRules } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { lookAtClientLink } from '../client-link.ts';
import { runIn, whoHas } from '../commands.ts';
import { loopbackDown } from '../here/itself.ts';
import { lookAtPeer } from '../peer.ts';
import { deaf } from '../pods/asked-for.ts';
import type { Finding, Report } from '../report.ts';
import { isHeardAt } from '../sockets/hearing.ts';
import { isAnswerLost } from './answers.ts';
import { bridgeUnseen, isSwitched } from './bridge.ts';
import { lookAtItsSender, lookAtNeighbours, sends } from './neighbours.ts';
import { bothHave, hasMac } from './next-hop.ts';
import { vlansApart } from './outside-vlans.ts';

/** Looks at the last hop: the pod's pair, its bridge, its neighbour entry; and how large packets may be on the way. */
export function lookAtLinks(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  const { client, target } = asked;
  lookAtClientLink(asked, node, report);
  if (client.kind === 'pod' && !sends(client.pod, target.ip, goals, node, report)) return;
  const narrow = client.kind === 'pod' ? narrowAt(client.pod) : undefined;
  if (narrow !== undefined) report.cannotTell('link', narrow);
  const shown: string[] = [];
  for (const goal of goals) {
    const text = formatIp(goal.ip);
    if (isAnswerLost(asked, goal, node, report)) continue;
    if (node.isOwnAddress(text)) {
      const down = client.kind === 'node' ? loopbackDown(node) : undefined;
      if (down) report.failEndpoint('link', goal.address, down);
      if (isBesideTwin(asked, goal, node))
        report.doubt(
          `both this node and a pod on the client’s link have the address ${text}: who of them answers is not known`,
        );
      shown.push(`${text} is this node`);
      continue;
    }
    const pods = node.podsAt(text);
    if (pods.length > 1) {
      const where = pods.map(({ netns }) => netns).join(', ');
      const shared = `${pods.length} pods of this node have ${text}: ${where}`;
      // Whoever is found may serve.
      if (pods.some(({ netns }) => isHeardAt(goal, target.protocol, node, netns)))
        report.cannotTellEndpoint('link', goal.address, `${shared}; which of them gets what comes is not known`);
      else
        report.failEndpoint('link', goal.address, {
          code: 'duplicate-ip',
          text: shared,
          remedy: whoHas(text, asked.knowledge),
        });
      continue;
    }
    const [pod] = pods;
    if (pod) {
      const taken = narrowAt(pod);
      if (taken !== undefined) report.cannotTellEndpoint('link', goal.address, taken);
      lookAtPod(asked, goal, pod, node, report);
      shown.push(`${text} by ${pod.outside!.name}`);
    } else {
      const by = lookAtPeer(asked, goal, node, report);
      if (by) shown.push(`${text} by ${by}`);
    }
  }
  report.stage('link', 'ok', shown.slice(0, 3).join(', ') + (shown.length > 3 ? `, ${shown.length - 3} more` : ''));
}

/** Whether a pod may find another one of its link by an address that this node has as well. */
function isBesideTwin({ client, target }: Asked, { ip }: Goal, node: NodeView): boolean {
  if (client.kind !== 'pod' || !ipEquals(ip, target.ip)) return false;
  return node.podsAt(formatIp(ip)).some(({ seenAs }) => seenAs?.index === client.pod.seenAs?.index);
}

function lookAtPod(asked: Asked, goal: Goal, pod: LocalPod, node: NodeView, report: Report): void {
  const { client, target } = asked;
  const { inside, outside, seenAs } = pod;
  const { address } = goal;
  const down = linkDown(pod);
  if (down) {
    report.failEndpoint('link', address, down);
    return;
  }
  const later = settles(pod);
  if (later !== undefined) report.cannotTellEndpoint('link', address, later);
  const rival = rivalOf(goal.ip, pod, node.allPods);
  if (rival) report.cannotTellEndpoint('link', address, bothHave(pod.ip, rival));
  const cut = vlansApart(asked, goal, pod, node);
  if (cut?.lasts) {
    report.failEndpoint('link', address, cut);
    return;
  }
  if (cut) report.cannotTellEndpoint('link', address, cut.text);
  const isBridge = seenAs!.kind === 'bridge';
  const isShown = showsToRules(seenAs!, goal.ip, node);
  const clientPort = client.kind === 'pod' ? client.pod.outside : undefined;
  if (isBridge && clientPort?.master === seenAs!.index && isolated(clientPort) && isolated(outside!)) {
    const text = `${clientPort.name} and ${outside!.name} are isolated ports of ${seenAs!.name}, between which no frames pass`;
    const remedy = [
      `bridge link set dev ${shellWord(outside!.name)} isolated off   # portIsolation in the CNI configuration`,
    ];
    // Without rules in the bridge the node sends on what it has translated, and it is no isolated port; answers come to it if masqueraded.
    if (goal.masqueraded === false || isShown) {
      report.failEndpoint('link', address, { code: 'link-down', text, remedy });
      return;
    }
    if (goal.masqueraded === undefined) report.cannotTellEndpoint('link', address, text);
  }
  const isSame = client.kind === 'pod' && client.pod.netns === pod.netns;
  // What no rules in the bridge translate the node sends on, and that comes from no port (should_deliver, net/bridge/br_forward.c).
  if (isSame && isBridge && isShown && outside!.bridgePort?.hairpin === false) {
    const text = `${pod.ip} gets itself, and its bridge port ${outside!.name} has no hairpin mode: one try in ${Math.max(1, report.usedCount)} hangs`;
    report.failEndpoint('link', address, {
      code: 'hairpin',
      text,
      remedy: [`bridge link set dev ${shellWord(outside!.name)} hairpin on`],
    });
    return;
  }
  const neighbour = node.neighbour(goal.ip, seenAs!.index);
  const mac = neighbour?.lladdr;
  const isKnown = neighbour !== undefined && (neighbour.state & NUD_NOARP) === 0;
  if ((seenAs!.flags & IFF_NOARP) !== 0 && !isKnown && !isSwitched(asked, goal, node)) {
    report.failEndpoint('link', address, { code: 'neighbour', ...deaf(seenAs!, 'this node') });
    return;
  }
  // What the node takes for the pod's MAC address is nothing to frames that it only switches.
  const isOther = mac && mac.length > 0 && !sameBytes(mac, inside.address) && !isSwitched(asked, goal, node);
  if (isOther && hasMac(pod, mac)) {
    const text = `this node sends to ${formatMac(mac)} for ${pod.ip}, which is another link of that pod than ${inside.name}`;
    report.cannotTellEndpoint('link', address, text);
  } else if (isOther && isOfMany(mac)) {
    const text = `this node sends to ${formatMac(mac)} for ${pod.ip}, which every link takes in, and TCP does not`;
    report.cannotTellEndpoint('link', address, text);
  } else if (isOther && (neighbour.state & (NUD_PERMANENT | NUD_NOARP)) === 0) {
    // The kernel asks whether it is still so before it gives a connection up, and whoever answers may serve.
    const text = `${pod.ip} was at MAC ${formatMac(mac)} when this node heard of it last, and the pod has ${formatMac(inside.address)}`;
    report.cannotTellEndpoint('link', address, `${text}: who gets what comes is not known`);
  } else if (isOther) {
    const text = `${pod.ip} is at MAC ${formatMac(mac)} by the neighbour table, the pod has ${formatMac(inside.address)}: another has its address`;
    report.failEndpoint('link', address, {
      code: 'duplicate-ip',
      text,
      remedy: [`ip neigh del ${pod.ip} dev ${shellWord(seenAs!.name)}`],
    });
    return;
  }
  const way = node.route({ destination: goal.ip });
  if (way.kind === 'route' && way.route.type === RTN_LOCAL) {
    const text = `this node takes ${pod.ip} for an address of its own, by a route, and the pod has it too`;
    report.cannotTellEndpoint('link', address, `${text}: who of them gets what comes is not known`);
  }
  if (isSame ? lookAtItsSender(goal, pod, node, report) : lookAtNeighbours(asked, goal, pod, node, report)) return;
  if (client.kind !== 'pod' || isSame || !isBridge || client.pod.seenAs?.index !== seenAs!.index) return;
  if (goal.masqueraded !== false) return;
  const isTranslated = !ipEquals(goal.ip, target.ip) || goal.port !== target.port;
  if (isShown || !isTranslated) return;
  report.failEndpoint('link', address, bridgeUnseen(address, seenAs!, goal.ip, node));
}

/** Whether a MAC address is that of a group, or of all. */
function isOfMany(mac: Uint8Array): boolean {
  return (mac[0]! & 1) === 1;
}

/** A segment of TCP has 48 bytes at least (TCP_MIN_SND_MSS, include/net/tcp.h) and 40 bytes of headers. */
const LEAST_MTU = 88;

/**
 * In words, how the node's end of a pod's pair takes less than the pod sends: single frames that are larger are dropped
 * there and nobody is told, those of one large segment (GSO) are not (is_skb_forwardable, net/core/dev.c). Undefined:
 * it takes all.
 */
function narrowAt({ ip, inside, outside, seenAs }: LocalPod): string | undefined {
  const tight = [inside, outside!, seenAs!].find(({ mtu }) => mtu < LEAST_MTU);
  if (tight)
    return `${tight.name} of ${ip} takes ${tight.mtu} bytes, less than TCP sends: what becomes of its packets was not looked at`;
  if (outside!.mtu >= inside.mtu) return undefined;
  const text = `the pod ${ip} sends up to ${inside.mtu} bytes, and ${outside!.name}, the other end of its pair, takes ${outside!.mtu}`;
  return `${text}: what becomes of larger packets was not looked at`;
}

function isolated({ bridgePort }: Link): boolean {
  return bridgePort?.isolated === true;
}

/**
 * In words, how a port of a bridge with a spanning tree (libvirt's) does not let frames pass yet: a client that sends again may have
 * what it asks for when it does. Undefined: it does, or never will.
 */
export function settles({ outside, seenAs }: LocalPod): string | undefined {
  if (outside!.bridgePort?.settling !== true) return undefined;
  return `the spanning tree of ${seenAs!.name} does not let frames pass at its port ${outside!.name} yet: ask again in half a minute`;
}

/** What of a pod's pair and bridge lets nothing pass; undefined: all do. */
export function linkDown({ ip, netns, inside, outside, seenAs }: LocalPod): Finding | undefined {
  if (!inside.up) {
    const set = runIn(netns, `ip link set ${shellWord(inside.name)} up`);
    const remedy = `${set}   # its routes are gone with it: better delete the pod`;
    return { code: 'link-down', text: `${inside.name} in the pod ${ip} is down`, remedy: [remedy] };
  }
  const down = [outside!, seenAs!].find(({ up }) => !up);
  if (down) {
    const remedy = [`ip link set ${shellWord(down.name)} up`];
    return { code: 'link-down', text: `${down.name} of ${ip} is down`, remedy };
  }
  // Switched off, or held back by the spanning tree.
  const { forwarding = true, settling = false } = outside!.bridgePort ?? {};
  if (forwarding || settling) return undefined;
  const text = `${seenAs!.name} lets no frames pass at its port ${outside!.name}`;
  return { code: 'link-down', text, remedy: [`bridge link set dev ${shellWord(outside!.name)} state 3`] };
}
