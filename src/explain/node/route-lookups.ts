import { IP_PROTOCOLS, type IpFamily } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import {
  listPolicyRules,
  lookUpRoute,
  type PolicyRule,
  type RouteAnswer,
  type RouteQuestion,
} from '../../netlink/route/index.ts';

/** Those that sockets get which ask for none: net.ipv4.ip_local_port_range as it is by default. */
const CLIENT_PORTS = [32_768, 60_999] as const;

/**
 * Asks for routes, each once, and notes where policy rules decide by what the question does not say: ports of clients,
 * users of processes.
 */
export class RouteLookups {
  readonly #rules = new Map<string, readonly PolicyRule[]>();
  readonly #answers = new Map<string, RouteAnswer>();
  readonly #doubts = new Set<string>();

  get doubts(): readonly string[] {
    return [...this.#doubts];
  }

  /** @param netlink a socket in the namespace of whose routes they are */
  ask(question: RouteQuestion, netlink: Netlink, whose: string): RouteAnswer {
    const key = `${whose} ${JSON.stringify(question)}`;
    const known = this.#answers.get(key);
    if (known) return known;
    const answer = lookUpRoute(netlink, question);
    this.#answers.set(key, answer);
    const rules = this.rulesOf(question.destination.family, netlink, whose);
    const inverted = beforeLocal(rules).find(({ isInverted }) => isInverted);
    if (inverted) {
      const about = `policy rule ${inverted.priority} of ${whose}, in front of the table of own addresses`;
      this.#doubts.add(`${about}, is for packets that do not have something (not): which these are was not looked at`);
    }
    for (const rule of rules) {
      const about = `policy rule ${rule.priority} of ${whose} asks for`;
      for (const [what, other] of othersBy(rule, question)) {
        if (isSameWay(answer, lookUpRoute(netlink, other))) continue;
        this.#doubts.add(`${about} ${what}, which is not known`);
      }
      if (rule.source && isRoutedOtherwise(answer, withoutSource(question), netlink))
        this.#doubts.add(`${about} the source, which sockets that ask for none do not have yet`);
    }
    return answer;
  }

  /** Asks anew from now on. */
  forget(): void {
    this.#answers.clear();
  }

  rulesOf(family: IpFamily, netlink: Netlink, whose: string): readonly PolicyRule[] {
    const key = `${whose} ${family}`;
    const known = this.#rules.get(key) ?? listPolicyRules(netlink, family);
    this.#rules.set(key, known);
    return known;
  }
}

function beforeLocal(rules: readonly PolicyRule[]): readonly PolicyRule[] {
  const local = rules.findIndex(({ isOfLocal }) => isOfLocal);
  return local < 0 ? rules : rules.slice(0, local);
}

/** The question as it would be for packets that a rule asks for, by what it asks for. */
function othersBy({ sourcePorts, destinationPorts, user, protocol }: PolicyRule, question: RouteQuestion) {
  const { flow, inInterface, source } = question;
  const [sourcePort, destinationPort] = [sourcePorts, destinationPorts].map((ports) => ports && clientPortOf(ports));
  const others: (readonly [what: string, question: RouteQuestion])[] = [];
  if (sourcePort !== undefined && flow && flow.sourcePort === undefined)
    others.push(['the source port', { ...question, flow: { ...flow, sourcePort } }]);
  if (destinationPort !== undefined && flow && flow.destinationPort === undefined)
    others.push(['the port of the client', { ...question, flow: { ...flow, destinationPort } }]);
  // The kernel takes it for one about UDP (inet_rtm_getroute, net/ipv4/route.c).
  if (protocol !== undefined && !flow)
    others.push(['the protocol', { ...question, flow: { protocol: IP_PROTOCOLS.TCP } }]);
  // What is forwarded is of no user of a process; a question without a source is none about packets that are sent.
  if (user !== undefined && source && inInterface === undefined)
    others.push(['the user of the process', { ...question, user }]);
  return others;
}

/**
 * The question as the kernel asks it for a socket that is bound to no address (udp_sendmsg, ip_route_connect in include/net/route.h,
 * ip6_dst_lookup_tail in net/ipv6/ip6_output.c); undefined: it asks with the source. TCP answers from the address it was asked at.
 */
function withoutSource({ source, ...question }: RouteQuestion): RouteQuestion | undefined {
  const { flow, inInterface } = question;
  if (!source || !flow || inInterface !== undefined) return undefined;
  return flow.protocol === IP_PROTOCOLS.TCP && flow.sourcePort !== undefined ? undefined : question;
}

/** @param answer for the same with the source. Of IPv4, TCP begins nothing unless both are answered, and goes by this one */
function isRoutedOtherwise(answer: RouteAnswer, question: RouteQuestion | undefined, netlink: Netlink): boolean {
  if (!question) return false;
  const other = lookUpRoute(netlink, question);
  const needsBoth = question.destination.family === 'IPv4' && question.flow?.protocol === IP_PROTOCOLS.TCP;
  return needsBoth ? answer.kind === 'route' && other.kind === 'refused' : !isSameWay(answer, other);
}

/** A port of a range that a client may have; undefined: it has none. */
function clientPortOf([first, last]: readonly [number, number]): number | undefined {
  const port = Math.max(first, CLIENT_PORTS[0]);
  return port <= Math.min(last, CLIENT_PORTS[1]) ? port : undefined;
}

/** Whether two answers are the same in type, link and gateway; two refusals are, whatever their reasons. */
export function isSameWay(one: RouteAnswer, other: RouteAnswer): boolean {
  if (one.kind === 'refused' || other.kind === 'refused') return one.kind === other.kind;
  const wayOf = ({ type, outInterface, gateway }: typeof one.route) => `${type} ${outInterface} ${gateway?.bytes}`;
  return wayOf(one.route) === wayOf(other.route);
}
