import {
  cidrContains,
  formatIp,
  IP_PROTOCOLS,
  type IpAddress,
  ipEquals,
  parseCidr,
  parseIp,
  withPort,
} from '../../core/index.ts';
import { hasPod } from '../knowledge/index.ts';
import { type NodeView, tryAttempts } from '../node/index.ts';
import type { Asked, Client } from './asked.ts';
import { asking, onNode } from './commands.ts';
import { isHere } from './here/is-here.ts';
import { isSentOnBridge } from './links/bridge.ts';
import type { Report } from './report.ts';

/** Discard: no answer is wanted, only that the kernel looks for whoever has the address. */
const ANY_PORT = 9;

type Outside = Extract<Client, { readonly kind: 'outside' }>;
/** A client outside. `link` is undefined where this node has no way to it. */
type Comer = Pick<Outside, 'ip'> & Partial<Outside>;
type Known = Pick<Asked, 'target' | 'knowledge'>;

/**
 * Whether what a client outside sends to an address of a Service or a pod comes to this node at all. Nothing here decides that: whoever
 * announces or routes the address does. Flows that came prove it; that nobody announces it is proved with `probe`, and only on a link
 * that this node shares with the client.
 */
export function lookAtArrival(asked: Asked, node: NodeView, report: Report): void {
  const { client, target } = asked;
  if (client.kind !== 'outside' || target.service?.via === 'node-port') return;
  const [vip, from] = [formatIp(target.ip), formatIp(client.ip)];
  if (isReachableHere(asked, client, node) || isKnownToHome(asked, client, node)) return;
  const arrived = flowsFromOutside(asked, client, node);
  if (arrived > 0) {
    const evidence = [{ source: 'conntrack', object: `flows to ${vip} from outside`, value: `${arrived}` }];
    report.stage(
      'source',
      'ok',
      `outside of this node; what it sends to ${vip} comes in by ${client.link.name}`,
      evidence,
    );
    return;
  }
  if (answersArp(asked, client, node)) {
    report.stage('source', 'ok', `outside of this node, which answers for ${vip} on ${client.link.name}`);
    return;
  }
  if (asked.probe && isUnannounced(asked, client, node)) {
    const text = `nobody answers for ${vip} on ${client.link.name}, the link of ${from} too: its packets come to no node`;
    const remedy = [`ip neigh show ${vip}`, 'Let the load-balancer controller announce it, or route it to the nodes'];
    report.fail('source', { code: 'no-path-to-vip', text, remedy });
    return;
  }
  report.cannotTell('source', notKnownToArrive(asked, client.ip, report));
}

/**
 * Doubts what fails of that which a client outside sends to somebody else: it may go there without this node, by a
 * link that the two share, or by another router.
 */
export function lookAtPassing(known: Known, client: Comer, node: NodeView, report: Report): void {
  const { verdict, code } = report.answer();
  const { ip, service } = known.target;
  // Addresses of Services, and those of their ranges that none has (`no-such-port`), are of every node.
  const isOfServices = service !== undefined || code === 'no-such-port';
  if (!['fails', 'partly'].includes(verdict) || isOfServices) return;
  if (isToldHere(known) || node.podsAt(formatIp(ip)).length > 0) return;
  if (isReachableHere(known, client, node) || answersArp(known, client, node)) return;
  if (flowsFromOutside(known, client, node) > 0) return;
  report.doubt(notKnownToArrive(known, client.ip, report), 'source');
}

/** The same of what a pod sends to somebody on its bridge of whom nothing is known here: only an attempt tells. */
export function lookAtBeside(asked: Asked, node: NodeView, report: Report): void {
  const { ip, service } = asked.target;
  const { verdict, path } = report.answer();
  const isTried = path.some(({ stage, result }) => stage === 'endpoint' && result === 'fail');
  if (isTried || !['fails', 'partly'].includes(verdict)) return;
  if (service || isHere(ip, node) || !isSentOnBridge(asked, { ip }, node)) return;
  report.doubt(
    `${formatIp(ip)} is of the link of ${formatIp(asked.client.ip)}: who has it there gets what is sent without this node`,
  );
}

/** Says where to ask, where that is known. @returns what is not known, in words */
function notKnownToArrive(
  { target: { ip, port, protocol }, knowledge }: Known,
  client: IpAddress,
  report: Report,
): string {
  const [vip, from] = [formatIp(ip), formatIp(client)];
  const owner = knowledge.others.find(({ addresses }) => addresses.includes(vip));
  const who = owner ? `: ${owner.name} has that address` : ', which whoever announces it decides: none came lately';
  if (owner) report.askThere(onNode(owner.name, asking(withPort(vip, port), { from, protocol }, knowledge)));
  return `it is not known here whether packets of ${from} to ${vip} come to this node${who}`;
}

/**
 * Whether the client is on another node, where what it sends to a Service is translated: nothing here has to do with it, and it is said
 * where to ask. What the objects forbid they forbid there as well.
 *
 * @param isByNode what was found holds of this node alone: its policy Local
 */
export function isServedElsewhere(asked: Asked, isByNode: boolean, node: NodeView, report: Report): boolean {
  const { client } = asked;
  if (client.kind !== 'outside') return false;
  const home = isReachableHere(asked, client, node) ? undefined : homeOfClient(asked, client.ip);
  if (home === undefined) return false;
  if (!report.hasFailed || isByNode) tellServedElsewhere(asked, client.ip, home, report);
  return true;
}

/** The other node that translates what a client sends to a Service; undefined: none does that is known, or this one has to. */
export function homeOfClient(
  { target, knowledge }: Omit<Asked, 'client' | 'probe'>,
  ip: IpAddress,
): string | undefined {
  return target.service && target.service.via !== 'node-port' ? homeOf({ knowledge }, { ip }) : undefined;
}

/** Nothing that is found here holds of such a client. */
export function tellServedElsewhere(
  { target: { ip, port, protocol }, knowledge }: Pick<Asked, 'target' | 'knowledge'>,
  client: IpAddress,
  home: string,
  report: Report,
): void {
  const [vip, from] = [formatIp(ip), formatIp(client)];
  const text = `${from} is on ${home}, where what it sends to ${vip} is translated: it comes here no more`;
  report.stage('source', 'unknown', text);
  report.doubt(text);
  report.askThere(onNode(home, asking(withPort(vip, port), { from, protocol }, knowledge)));
}

/**
 * Whether clients know where to send what is for an address of this node: it is one that the Node object tells, or one of the link that
 * the client's packets come in by. Of others (of a bridge of pods, of `lo`, and in mode ipvs those of all Services) nobody learns by that.
 */
function isReachableHere({ target: { ip }, knowledge }: Known, client: Comer, node: NodeView): boolean {
  const isUp = (index: number) => node.link(index)?.up === true;
  const own = node.addresses.filter(({ address, index }) => ipEquals(address, ip) && isUp(index));
  const isTold = own.length > 0 && knowledge.node.addresses.includes(formatIp(ip));
  return isTold || own.some(({ index }) => index === client.link?.index);
}

/**
 * Whether all nodes know that an address is of this one: its Node object tells it, or the range that it is in, or an
 * EndpointSlice does.
 */
function isToldHere({ target: { ip }, knowledge: { node, destination } }: Known): boolean {
  if (destination.kind === 'address' && destination.node === node.name) return true;
  return node.addresses.includes(formatIp(ip)) || node.podCidrs.some((range) => cidrContains(parseCidr(range), ip));
}

/** Whether a client that is on another node gets here: nodes know where each other's pods are, and who is on a link that they share. */
function isKnownToHome(known: Known, { ip }: Outside, node: NodeView): boolean {
  const home = homeOf(known, { ip });
  if (home === undefined) return false;
  if (isToldHere(known)) return true;
  const { addresses = [] } = known.knowledge.others.find(({ name }) => name === home) ?? {};
  const shared = addresses.flatMap((address) => {
    const way = node.route({ destination: parseIp(address) });
    return way.kind === 'route' && !way.route.gateway ? [way.route.outInterface] : [];
  });
  return node.addresses.some(({ address, index }) => ipEquals(address, known.target.ip) && shared.includes(index));
}

/**
 * Whether this node tells whoever asks on the client's link that it has an address of another of its links (arp_ignore). Of IPv6 no
 * node does.
 */
function answersArp({ target }: Known, { link }: Comer, node: NodeView): boolean {
  const isOnLink = ({ index, address, prefixLength }: NodeView['addresses'][number]) =>
    index === link?.index && cidrContains({ address, prefixLength }, target.ip);
  if (!link || target.family !== 'IPv4' || !node.isOwnAddress(formatIp(target.ip)) || !node.addresses.some(isOnLink))
    return false;
  return ['all', link.name].every((name) => node.sysctl(`net/ipv4/conf/${name}/arp_ignore`) === '0');
}

/** The other node that a client runs on; undefined: none that is known. */
function homeOf({ knowledge }: Pick<Asked, 'knowledge'>, { ip }: Pick<Outside, 'ip'>): string | undefined {
  const { source, node } = knowledge;
  if (source?.node && source.node !== node.name) return source.node;
  return otherNodeOf(ip, knowledge);
}

/** The other node that has an address, or whose pods may have it; undefined: none that is known. */
function otherNodeOf(ip: IpAddress, { others }: Asked['knowledge']): string | undefined {
  return others.find((one) => one.addresses.includes(formatIp(ip)) || hasPod(one, ip))?.name;
}

/**
 * Of the client, or of anybody who comes by its link: what comes to a Service's address is announced to all of them. Other nodes know
 * ways that clients do not, and to a pod's address everybody has a way of his own.
 */
function flowsFromOutside({ target, knowledge }: Known, client: Comer, node: NodeView): number {
  const { ip, port, protocol } = target;
  const flows = node.tracking.flowsTo({ protocol: IP_PROTOCOLS[protocol], port, ip });
  const isFromOutside = ({ source }: (typeof flows)[number]['flow']['original']): boolean => {
    if (ipEquals(source, client.ip)) return true;
    if (!target.service || otherNodeOf(source, knowledge) !== undefined) return false;
    if (node.isOwnAddress(formatIp(source))) return false;
    const back = node.route({ destination: source });
    return back.kind === 'route' && back.route.outInterface === client.link?.index;
  };
  return flows.filter(({ flow }) => isFromOutside(flow.original)).length;
}

/** Whether nobody at all has the address on the link of the client: neither another machine nor a program of this node. Sends. */
function isUnannounced({ target }: Asked, client: Outside, node: NodeView): boolean {
  const out = node.route({ destination: target.ip });
  const back = node.route({ destination: client.ip });
  if (out.kind === 'refused' || back.kind === 'refused' || !out.route.source) return false;
  const isOnLink = !out.route.gateway && !back.route.gateway && out.route.outInterface === client.link.index;
  if (!isOnLink || node.mayAnswerFor(target.family, client.link.name)) return false;
  tryAttempts(undefined, [{ protocol: 'UDP', source: out.route.source, ip: target.ip, port: ANY_PORT }]);
  return node.isNextHopDead(target.ip);
}
