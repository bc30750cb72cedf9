import { formatIp } from '../../core/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import type { LocalPod, NodeView } from '../node/index.ts';
import type { Asked, Goal } from './asked.ts';
import { lookAtPeer } from './peer.ts';
import type { Finding, Report } from './report.ts';

/** Looks at the last hop: the pod's pair, its bridge, its neighbour entry; and how large packets may be on the way. */
export function lookAtLinks(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  const shown: string[] = [];
  for (const goal of goals) {
    const text = formatIp(goal.ip);
    if (node.isOwnAddress(text)) {
      shown.push(`${text} is this node`);
      continue;
    }
    const pods = node.podsAt(text).filter(({ outside }) => outside);
    if (pods.length > 1) {
      const where = pods.map(({ netns }) => netns).join(', ');
      report.failEndpoint('link', goal.address, {
        code: 'duplicate-ip',
        text: `${pods.length} pods of this node have ${text}: ${where}`,
      });
      continue;
    }
    const [pod] = pods;
    if (pod) {
      lookAtPod(asked, goal, pod, node, report);
      shown.push(`${text} by ${pod.outside!.name}`);
    } else {
      const by = lookAtPeer(asked, goal, node, report);
      if (by) shown.push(`${text} by ${by}`);
    }
  }
  report.stage('link', 'ok', shown.slice(0, 3).join(', ') + (shown.length > 3 ? `, ${shown.length - 3} more` : ''));
}

function lookAtPod({ client }: Asked, goal: Goal, pod: LocalPod, node: NodeView, report: Report): void {
  const { inside, outside, seenAs } = pod;
  const { address } = goal;
  const down = [inside, outside!, seenAs!].find(({ up }) => !up);
  if (down) {
    const remedy = [`ip link set ${down.name} up`];
    report.failEndpoint('link', address, { code: 'link-down', text: `${down.name} of ${pod.ip} is down`, remedy });
    return;
  }
  if (outside!.bridgePort?.forwarding === false) {
    report.failEndpoint('link', address, portBlocked(outside!, seenAs!));
    return;
  }
  const isBridge = seenAs!.kind === 'bridge';
  const { outside: clientPort } = client.kind === 'pod' ? client.pod : { outside: undefined };
  if (
    isBridge &&
    clientPort?.master === seenAs!.index &&
    clientPort.bridgePort?.isolated &&
    outside!.bridgePort?.isolated
  ) {
    const text = `${clientPort.name} and ${outside!.name} are isolated ports of ${seenAs!.name}, between which no frames pass`;
    const remedy = [`bridge link set dev ${outside!.name} isolated off   # portIsolation in the CNI configuration`];
    report.failEndpoint('link', address, { code: 'link-down', text, remedy });
    return;
  }
  const isSame = client.kind === 'pod' && client.pod.netns === pod.netns;
  if (isSame && isBridge && outside!.bridgePort?.hairpin === false) {
    const text = `${pod.ip} gets itself, and its bridge port ${outside!.name} has no hairpin mode: one try in ${Math.max(1, report.usedCount)} hangs`;
    report.failEndpoint('link', address, {
      code: 'hairpin',
      text,
      remedy: [`bridge link set dev ${outside!.name} hairpin on`],
    });
    return;
  }
  const neighbour = node.neighbour(goal.ip, seenAs!.index);
  const [mac, own] = [neighbour?.lladdr ?? new Uint8Array(), inside.address].map((one) =>
    Buffer.from(one).toString('hex'),
  );
  if (neighbour && mac !== '' && mac !== own) {
    const text = `${pod.ip} is at MAC ${mac} by the neighbour table, the pod has ${own}: another has its address`;
    report.failEndpoint('link', address, {
      code: 'duplicate-ip',
      text,
      remedy: [`ip neigh del ${pod.ip} dev ${seenAs!.name}`],
    });
    return;
  }
  if (client.kind !== 'pod' || isSame || !isBridge || client.pod.seenAs?.index !== seenAs!.index) return;
  if (goal.masqueraded !== false) return;
  const setting = `net/bridge/bridge-nf-call-${goal.ip.family === 'IPv4' ? 'iptables' : 'ip6tables'}`;
  const value = node.sysctl(setting);
  if (value === '1' || goal.address === '') return;
  report.onBridge(
    address,
    `${setting.replaceAll('/', '.')} is ${value ?? 'not there (br_netfilter is not loaded)'}`,
    seenAs!.name,
  );
}

/** A port that is switched off, or held back by the spanning tree. */
export function portBlocked(port: Link, bridge: Link): Finding {
  const text = `${bridge.name} lets no frames pass at its port ${port.name}`;
  return { code: 'link-down', text, remedy: [`bridge link set dev ${port.name} state 3`] };
}
