import { cidrContains, formatCidr, formatIp, IP_PROTOCOLS, type IpAddress } from '../../core/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import { LOOPBACK_IFINDEX } from '../../netlink/uapi/index.ts';
import type { IpsecPolicy } from '../../netlink/xfrm/index.ts';
import type { CgroupPrograms, LinkRules, LocalPod, NodeView } from '../node/index.ts';
import type { Asked, Goal } from './asked.ts';
import type { Report } from './report.ts';

// Rules that no walk knows, beside the hooks of the host: packets meet them on links (ingress, egress) and in bridges, and what asks by
// ARP for whom they are sent to meets its own. Filters of tc as well.

/** Whether all bridges show ARP to arptables; not there without br_netfilter, without which none does. */
const SHOWN_ARP = 'net/bridge/bridge-nf-call-arptables';

/** Says which of them are on the way, so that nothing can be told past them. */
export function lookAtLinkChains(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  const passed = linksPassed(asked, goals, node);
  lookForVrf(passed, node, report);
  lookBesideRules(asked, goals, passed, node, report);
  lookAtIpsec(asked, goals, node, report);
  if (node.linkRules.length === 0) return;
  const met = node.linkRules.filter((rules) => isMet(rules, asked, passed, node));
  const [first] = met;
  if (!first) return;
  const { place, source, show } = first;
  const text = `packets on the way meet ${place}${met.length > 1 ? ` and ${met.length - 1} more` : ''}, which is not simulated`;
  report.cannotTell('others', text, [{ source, object: place, value: show }]);
}

/** A VRF has routes of its own, and only some sockets: nothing holds for what comes by its links. */
export function lookForVrf(links: readonly Link[], node: NodeView, report: Report): void {
  const inside = links.find(({ master }) => node.link(master)?.kind === 'vrf');
  if (!inside) return;
  const text = `${inside.name} is in the VRF ${node.link(inside.master)!.name}, which has routes and sockets of its own`;
  report.doubt(`${text}: they are not simulated`);
}

function isMet({ of, links }: LinkRules, { target }: Asked, passed: readonly Link[], node: NodeView): boolean {
  const isBridged = passed.some(({ bridgePort }) => bridgePort !== undefined);
  const isOnLink = links ? passed.some(({ name }) => isAmong(links)(name)) : passed.length > 0;
  switch (of) {
    case 'links':
      return isOnLink;
    case 'bridges':
      return isBridged;
    case 'ARP':
      return isOnLink && target.family === 'IPv4';
    case 'switched ARP':
      // Bridges show it by themselves where they show packets (br_nf_forward_arp, net/bridge/br_netfilter_hooks.c).
      return isOnLink && isBridged && target.family === 'IPv4' && node.sysctl(SHOWN_ARP) !== undefined;
  }
}

/** What may drop packets of a link or send them elsewhere, of this node's links and the pods' own. */
function lookBesideRules(
  asked: Asked,
  goals: readonly Goal[],
  passed: readonly Link[],
  node: NodeView,
  report: Report,
): void {
  const met = [...new Set(passed)].map((link) => ({ where: link.name, found: node.besideRulesOn(link) }));
  const inPods = podsOn(asked, goals, node).map((pod) => {
    return { where: `${pod.inside.name} in the pod ${pod.ip}`, found: node.besideRulesIn(pod) };
  });
  for (const { where, found } of [...met, ...inPods]) {
    for (const { what, kind, leads, show } of found) {
      const text = `packets on the way meet ${what} on ${where}${kind ? ` (${kind})` : ''}, which is not simulated`;
      report.cannotTell('others', text, [{ source: 'link', object: where, value: show }]);
      if (leads) report.doubt(text);
    }
  }
}

/**
 * Programs of BPF that see all sockets, or those of the client's pod: a proxy in the cgroups (Cilium's) leads calls past all rules, before
 * there is a packet. Who connects has no socket yet; those that listen in its pod show what hangs on the cgroups of both.
 */
export function lookAtSocketPrograms({ client }: Pick<Asked, 'client'>, node: NodeView, report: Report): void {
  lookAtPrograms(node.cgroupPrograms, 'all sockets', report);
  if (client.kind !== 'pod') return;
  const { ip, netns } = client.pod;
  const listening = (['TCP', 'UDP'] as const).flatMap((protocol) => node.listeners(protocol, netns));
  lookAtPrograms(node.programsSeeing(listening), `sockets of the pod ${ip}`, report);
}

function lookAtPrograms({ ofCalls, ofPackets }: CgroupPrograms, which: string, report: Report): void {
  const places = [...ofCalls, ...ofPackets];
  if (places.length === 0) return;
  const text = `programs of BPF see ${which} (${places.join(', ')}): what they do is not simulated`;
  report.cannotTell('others', text, [{ source: 'cgroup', object: which, value: 'bpftool cgroup tree' }]);
  if (ofCalls.length > 0) report.doubt(text);
}

/** Policies of IPsec for packets there or back, which wrap them, want them wrapped, or block them. */
function lookAtIpsec({ client, target }: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  const pairs = goals.flatMap(({ ip, source }): (readonly [IpAddress, IpAddress])[] => [
    [client.ip, target.ip],
    [client.ip, ip],
    [source ?? client.ip, ip],
  ]);
  const isFor = ({ source, destination }: IpsecPolicy) =>
    pairs.some(([one, other]) => {
      const isThere = cidrContains(source, one) && cidrContains(destination, other);
      return isThere || (cidrContains(source, other) && cidrContains(destination, one));
    });
  const protocol = IP_PROTOCOLS[target.protocol];
  const lookIn = (where: string, netns?: string) => {
    const ipsec = node.ipsec(netns);
    if (!ipsec) report.cannotTell('others', `whether IPsec of ${where} has policies cannot be read`);
    if (ipsec?.blocksOthers) {
      const text = `IPsec of ${where} blocks packets that no policy is for: which these are was not looked at`;
      report.cannotTell('others', text, [{ source: 'xfrm', object: where, value: 'ip xfrm policy getdefault' }]);
    }
    const policy = ipsec?.policies.find((one) => [0, protocol].includes(one.protocol) && isFor(one));
    if (!policy) return;
    const { source, destination } = policy;
    const text = `IPsec of ${where} has a policy for packets on the way, from ${formatCidr(source)} to ${formatCidr(destination)}: what it does was not looked at`;
    report.cannotTell('others', text, [{ source: 'xfrm', object: where, value: 'ip xfrm policy' }]);
  };
  lookIn('this node');
  for (const { ip, netns } of podsOn({ client }, goals, node)) lookIn(`the pod ${ip}`, netns);
}

/** The pods of this node that packets come from or go to. */
function podsOn({ client }: Pick<Asked, 'client'>, goals: readonly Goal[], node: NodeView): readonly LocalPod[] {
  const pods = goals.flatMap(({ ip }) => node.podsAt(formatIp(ip)));
  const all = client.kind === 'pod' ? [client.pod, ...pods] : pods;
  return [...new Map(all.map((pod) => [pod.netns, pod])).values()];
}

/** Those that packets come in or leave by, of this node. */
function linksPassed({ client }: Asked, goals: readonly Goal[], node: NodeView): readonly Link[] {
  const passed: (Link | undefined)[] = [];
  if (client.kind === 'pod') passed.push(client.pod.outside, client.pod.seenAs);
  if (client.kind === 'outside') passed.push(...withLower(node.link(client.link.index), node));
  for (const { ip } of goals) {
    const pods = node.podsAt(formatIp(ip));
    for (const { outside, seenAs } of pods) passed.push(outside, seenAs);
    if (pods.length > 0) continue;
    if (!node.isOwnAddress(formatIp(ip))) passed.push(...withLower(node.wayOut(ip)?.link, node));
    else if (client.kind === 'node') passed.push(node.link(LOOPBACK_IFINDEX));
  }
  return passed.filter((link) => link !== undefined);
}

/** Kinds of links whose frames another link carries, and those of which any port may. */
const UPON_ANOTHER: ReadonlySet<string> = new Set(['vlan', 'macvlan', 'ipvlan']);
const OF_PORTS: ReadonlySet<string> = new Set(['bridge', 'bond', 'team']);

/** A link to the outside and those below it: that of a VLAN, the ports of a bond or bridge, but for those of pods. */
function withLower(link: Link | undefined, node: NodeView): readonly Link[] {
  if (!link) return [];
  const ofPods = (['IPv4', 'IPv6'] as const).flatMap((family) => node.localPods(family));
  const isPods = ({ index }: Link) => ofPods.some(({ outside }) => outside!.index === index);
  const ports = OF_PORTS.has(link.kind) ? node.links.filter((one) => one.master === link.index && !isPods(one)) : [];
  const under = UPON_ANOTHER.has(link.kind) && link.peerNetnsId === undefined ? node.link(link.peerIndex) : undefined;
  return [link, ...[...ports, ...(under ? [under] : [])].flatMap((one) => withLower(one, node))];
}

function isAmong(links: readonly string[]): (name: string) => boolean {
  return (name) => links.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one));
}
