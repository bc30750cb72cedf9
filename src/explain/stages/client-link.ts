import { formatIp, formatMac, type IpAddress, type IpFamily } from '../../core/index.ts';
import type { Link, Neighbour } from '../../netlink/route/index.ts';
import { IFF_NOARP, NUD_NOARP } from '../../netlink/uapi/index.ts';
import { isUnanswered, type NodeView, unansweredText } from '../node/index.ts';
import type { Asked } from './asked.ts';
import { asksFrom } from './links/discovery.ts';
import { vlanToClient } from './links/outside-vlans.ts';
import {
  ARP_IGNORE,
  arpIgnoreOf,
  deaf,
  isArpFiltered,
  isArpIgnored,
  isFixed,
  isTaken,
  isUnknown,
} from './pods/asked-for.ts';
import type { Report } from './report.ts';

const MAC_LENGTH = 6;

/**
 * Looks at this node's link to a client outside. What the client takes for this node's MAC address, and which it has,
 * nobody here knows.
 */
export function lookAtClientLink(asked: Asked, node: NodeView, report: Report): void {
  const { client, target } = asked;
  if (client.kind !== 'outside') return;
  const link = node.link(client.link.index);
  const way = node.route({ destination: client.ip });
  if (!link || way.kind === 'refused' || way.route.outInterface !== link.index) return;
  const broken = node.wayOut(client.ip)?.broken;
  if (broken?.what === 'link') {
    report.fail('link', { code: 'link-down', text: broken.text, remedy: [broken.show] });
    return;
  }
  const cut = vlanToClient(asked, node);
  if (cut?.lasts) {
    report.fail('link', cut);
    return;
  }
  if (cut) report.cannotTell('link', cut.text);
  if (!asksByMac(link)) return;
  const hop = way.route.gateway ?? client.ip;
  const entry = node.neighbour(hop, link.index);
  if ((link.flags & IFF_NOARP) !== 0) {
    const found = deaf(link, 'this node');
    if (isUnknown(entry)) report.fail('link', { code: 'neighbour', ...found });
    else report.cannotTell('link', `${found.text}: whether ${formatIp(client.ip)} knows it was not looked at`);
    return;
  }
  if (isUnknown(entry) && hop === client.ip && isOfPods(link, hop, node)) {
    const text = `no pod on ${link.name} is known to have ${formatIp(hop)}, and this node has heard of nobody else there who does`;
    report.cannotTell('link', `${text}: whether there is such a client is not known here`);
  }
  const barred = barredByPort(link, hop, entry, node);
  if (barred !== undefined) report.cannotTell('link', barred);
  const silent = [entry, ...node.nextHops(client.ip)].find(isUnanswered);
  if (silent) {
    const text = unansweredText(silent, node.link(silent.index)?.name ?? '?');
    report.cannotTell('link', `${text}: whether answers get to ${formatIp(client.ip)} is not known here`);
  }
  if (entry && isFixed(entry)) {
    const text = `this node has a fixed entry for ${formatIp(hop)} on ${link.name} (${formatMac(entry.lladdr)})`;
    report.cannotTell('link', `${text}: whether that is right is not known here`);
  }
  if (hop.family === 'IPv6' && isUnknown(entry) && !asksFrom(link, target.ip, node)) {
    const text = `${link.name} has no link-local address from which this node could ask for ${formatIp(hop)}`;
    report.cannotTell('link', `${text}: whether it learns of it otherwise is not known here`);
  }
  const ignoresAll = hop.family === 'IPv4' && arpIgnoreOf(link, node) === ARP_IGNORE.all;
  if (ignoresAll) {
    report.cannotTell('link', `nobody who asks on ${link.name} for addresses of this node gets an answer (arp_ignore)`);
  }
  if (hop.family === 'IPv4' && node.isOwnAddress(formatIp(target.ip))) {
    const text = `${formatIp(hop)} gets no answer on ${link.name} when it asks for ${formatIp(target.ip)}`;
    if (!ignoresAll && isArpIgnored(target.ip, hop, link, node)) report.cannotTell('link', `${text} (arp_ignore)`);
    else if (isArpFiltered(target.ip, hop, link, node)) report.cannotTell('link', `${text} (arp_filter)`);
    else if (!isTaken(target.ip, hop, link, node))
      report.cannotTell('link', `${text}: this node does not take what comes there for its own (ip rule, rp_filter)`);
  }
}

/** Whether nobody but pods is on a link: their bridge without another port, or a pair. */
function isOfPods(link: Link, { family }: IpAddress, node: NodeView): boolean {
  const hasPods = node.localPods(family).some(({ seenAs }) => seenAs?.index === link.index);
  return hasPods && portsOfOthers(link, family, node).length === 0;
}

/** The ports of a bridge behind which there is no pod of this node; none of any other link. */
function portsOfOthers({ index }: Link, family: IpFamily, node: NodeView): readonly Link[] {
  const pods = node.localPods(family).filter(({ seenAs }) => seenAs?.index === index);
  return node.links.filter(
    (port) => port.master === index && !pods.some(({ outside }) => outside?.index === port.index),
  );
}

/**
 * In words, what the port of a bridge keeps from whoever is behind it and this node, where it may be that port (br_handle_frame_finish,
 * net/bridge/br_input.c; br_flood, net/bridge/br_forward.c); undefined: nothing.
 */
function barredByPort(link: Link, hop: IpAddress, entry: Neighbour | undefined, node: NodeView): string | undefined {
  const ports = portsOfOthers(link, hop.family, node);
  const entered = isUnknown(entry) ? [] : node.bridges.forwarding(link.index, entry!.lladdr);
  const isFixedAt = ({ index }: Link) => entered.some((one) => one.index === index && (one.state & NUD_NOARP) !== 0);
  const mayBeAt = ({ index }: Link) => entered.length === 0 || entered.some((one) => one.index === index);
  const locked = ports.find((port) => port.bridgePort?.locked && mayBeAt(port) && !isFixedAt(port));
  if (locked)
    return `the port ${locked.name} of ${link.name} is locked: frames of senders that are not entered for it are dropped`;
  const unflooded = isUnknown(entry) ? ports.find(({ bridgePort }) => bridgePort?.proxyArp) : undefined;
  return (
    unflooded &&
    `the port ${unflooded.name} of ${link.name} gets nothing that is flooded (proxy_arp), so that this node, which does not know ${formatIp(hop)}, cannot ask for it there`
  );
}

/** Whether addresses are asked for on a link: on tunnels whoever makes them enters them. */
function asksByMac({ address, kind }: Link): boolean {
  return address.length === MAC_LENGTH && kind !== 'vxlan';
}
