import { formatIp, type IpAddress, ipEquals } from '../../../core/index.ts';
import { type NodeView, startOf } from '../../node/index.ts';
import { walkInvalidAnswer } from '../../walk/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { isHere } from '../here/is-here.ts';
import { isBridged, isUnseen } from '../links/bridge.ts';
import { showing } from '../place.ts';
import type { Report } from '../report.ts';
import { countedLately } from '../tracking/lately.ts';
import { lookAtLater } from './later.ts';
import { ANY_PORT, originOf } from './later-walks.ts';
import { untrackedByIpvs } from './untracked.ts';

const MASQUERADED = 'have agents masquerade it: --masquerade-all, or --cluster-cidr with the range of pods';

/** Whether answers come back through this node, where they are translated back, and through the rules of others. */
export function lookAtWayBack(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  const { client, target } = asked;
  const notes = new Set<string>();
  for (const goal of goals) {
    const here = isHere(goal.ip, node);
    if (target.service && goal.masqueraded === false && answersItself(asked, goal, here, node)) {
      const untracked = untrackedByIpvs(goal, node);
      const text = `${goal.address} answers ${formatIp(client.ip)} directly, not through this node, and nothing translates that back`;
      report.failEndpoint('way back', goal.address, {
        code: 'way-back',
        text: untracked ? `${text}: ${untracked.text}` : text,
        remedy: untracked?.remedy ?? [MASQUERADED],
      });
      continue;
    }
    if (isUnseen(asked, goal, node) && isBridged(asked, goal, node.podsAt(formatIp(goal.ip))[0], node)) {
      notes.add('answers are frames of the same bridge');
      continue;
    }
    if (comesAsItself(goal, node)) {
      const text = `${goal.address} gets packets that seem to come from itself, which nobody takes`;
      const remedy = goal.translatedBy ? [showing(goal.translatedBy)] : ['nft -a list ruleset'];
      report.failEndpoint('way back', goal.address, { code: 'way-back', text, remedy });
      continue;
    }
    const manyHomed = client.kind === 'node' && target.protocol === 'SCTP' ? untrackedByIpvs(goal, node) : undefined;
    if (manyHomed) {
      const text = `a socket of SCTP has all addresses of this node, by any of which it may be answered; ${manyHomed.text}`;
      report.cannotTellEndpoint('way back', goal.address, text);
      continue;
    }
    lookAtLater(asked, goal, here, node, report);
    notes.add(goal.masqueraded ? 'masqueraded, answers come to this node' : 'answers come through this node');
  }
  lookAtInvalid(asked, goals, node, report);
  report.stage('way back', 'ok', [...notes].join('; '));
}

/** Whether answers pass this node by where nothing is masqueraded. */
function answersItself({ client, target }: Asked, { ip }: Goal, isHere: boolean, node: NodeView): boolean {
  switch (client.kind) {
    case 'pod':
      return ipEquals(client.ip, ip);
    case 'outside':
      return !isHere;
    case 'node':
      // In mode ipvs the node has the addresses of Services, and takes the one it connects to for its own.
      return !isHere && ipEquals(client.ip, target.ip) && !isSourceTo(ip, client.ip, node);
  }
}

/** Whether this node connects to somebody with this address of its own by itself, so that answers to it come back. */
function isSourceTo(to: IpAddress, own: IpAddress, node: NodeView): boolean {
  const answer = node.route({ destination: to });
  return answer.kind === 'route' && answer.route.source !== undefined && ipEquals(answer.route.source, own);
}

/** Whether rules give what comes to a pod the pod's own address as source. */
function comesAsItself({ ip, source, masqueraded }: Goal, node: NodeView): boolean {
  return masqueraded === true && source !== undefined && ipEquals(source, ip) && !node.isOwnAddress(formatIp(ip));
}

/**
 * Answers outside of the TCP window pass translation by (nf_conntrack_in, net/netfilter/nf_conntrack_core.c). The client knows nobody
 * of the endpoint's own address and resets the connection, unless a rule drops such packets.
 */
function lookAtInvalid(
  { target, client, knowledge }: Asked,
  goals: readonly Goal[],
  node: NodeView,
  report: Report,
): void {
  const lately = countedLately(knowledge, node);
  const invalid = lately?.by('invalid') ?? 0;
  const isLiberal = node.sysctl('net/netfilter/nf_conntrack_tcp_be_liberal') === '1';
  if (!target.service || target.protocol !== 'TCP' || !lately || invalid === 0 || isLiberal) return;
  const passing = goals.find((goal) => {
    const origin = originOf(goal, node);
    if (origin === undefined || origin === 'this host') return false;
    const { ip: source, port: sourcePort } = goal;
    const destination = goal.source ?? client.ip;
    const { branches } = walkInvalidAnswer(
      { protocol: 'tcp', source, sourcePort, destination, destinationPort: ANY_PORT },
      startOf(origin, target.family, node),
    );
    return branches.every(({ result: { end } }) => end.kind === 'sent' || end.kind === 'delivered');
  });
  if (!passing) return;
  const text = `${invalid} packets in the last ${lately.seconds} s were none of a tracked connection, to the kernel's mind: such an answer of ${passing.address} is not translated back, and resets the connection`;
  report.warn('invalid-rst', text);
}
