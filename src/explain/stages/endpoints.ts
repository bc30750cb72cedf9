import { cidrContains, formatIp, parseCidr, withPort } from '../../core/index.ts';
import { type EndpointAddress, type KnownEndpoint, type KnownPort, knownFamily } from '../knowledge/index.ts';
import type { Asked } from './asked.ts';
import { editing, showingSlices } from './commands.ts';
import type { Report } from './report.ts';

/** Why an endpoint is used of which nothing more is told. */
const TOO_MANY = 'used, and one of too many to tell why';

/** What the plan says becomes of the connection. */
export interface Planned {
  readonly verdict: 'forward' | 'reject' | 'drop';
  /** Those it may get. */
  readonly endpoints: readonly EndpointAddress[];
}

/** Says which endpoints are used for this client, and why the others are not. */
export function lookAtEndpoints(asked: Asked, report: Report): Planned {
  const { target, client, knowledge } = asked;
  const { service, port, via } = target.service!;
  const inside = isInside(asked);
  const byLocal = via === 'cluster-ip' ? port.internalPolicy === 'Local' : port.externalPolicy === 'Local' && !inside;
  // Pods, those of other nodes too where they are known by address, and processes of this node reach external addresses
  // by policy Cluster, whatever it says (short circuit).
  const verdict =
    via === 'cluster-ip'
      ? port.internalVerdict
      : inside && port.externalVerdict === 'drop'
        ? 'forward'
        : port.externalVerdict;
  const isUsed = (endpoint: KnownEndpoint) => (byLocal ? endpoint.usedByLocal : endpoint.usedByCluster);
  const used = port.endpoints.filter(isUsed);
  for (const endpoint of port.endpoints) {
    const { ip, node, here } = endpoint;
    const reason = byLocal ? endpoint.local : endpoint.cluster;
    report.addEndpoint({ address: withPort(ip, endpoint.port), node, here, used: isUsed(endpoint), reason });
  }
  const further = byLocal ? port.further.local : port.further.cluster;
  for (const { ip, port: to } of further)
    report.addEndpoint({ address: withPort(ip, to), node: null, here: false, used: true, reason: TOO_MANY });
  const endpoints = [...used, ...further];
  const text = `${endpoints.length} used of ${port.endpointsTotal}${list(used)}${leftOut(port, isUsed, byLocal)}`;
  const behind = knownFamily(knowledge, target.family)?.failing;
  // While the agent cannot write, the kernel may do something else: it is asked.
  if (verdict !== 'forward' && !behind) whyNone(asked, verdict, report);
  else report.stage('endpoints', 'ok', text);
  if (via === 'load-balancer-ip' && port.sourceRanges.length > 0) {
    const within = port.sourceRanges.some((range) => cidrContains(parseCidr(range), client.ip));
    if (!within) {
      report.fail('endpoints', {
        code: 'source-ranges',
        text: `${formatIp(client.ip)} is in none of the source ranges ${port.sourceRanges.join(', ')}`,
        remedy: [editing(service.name, 'spec.loadBalancerSourceRanges')],
      });
    }
  }
  if (service.hintsIgnored !== null) report.warn('hints', `topology hints are not followed: ${service.hintsIgnored}`);
  if (used.length > 0 && further.length === 0 && used.every(({ terminating }) => terminating)) {
    report.warn('terminating', `all ${used.length} endpoints in use are terminating`);
  }
  return { verdict, endpoints };
}

/** Whether the rules take the client for a pod or this node, as kube-proxy's do. */
function isInside({ client, target, knowledge }: Asked): boolean {
  if (client.kind === 'node') return true;
  const pods = knownFamily(knowledge, target.family)?.podTraffic;
  switch (pods?.kind) {
    case 'cidr':
      return cidrContains(parseCidr(pods.cidr), client.ip);
    case 'interface': {
      const { name } = client.kind === 'pod' ? client.pod.seenAs! : client.link;
      return pods.isPrefix ? name.startsWith(pods.name) : name === pods.name;
    }
    default:
      return false;
  }
}

function list(used: readonly KnownEndpoint[]): string {
  if (used.length === 0) return '';
  const shown = used.slice(0, 3).map(({ ip, here, node }) => `${ip} (${here ? 'here' : (node ?? 'node unknown')})`);
  return `: ${shown.join(', ')}${used.length > 3 ? ', ...' : ''}`;
}

function leftOut(port: KnownPort, isUsed: (endpoint: KnownEndpoint) => boolean, byLocal: boolean): string {
  const others = port.endpoints.filter((endpoint) => !isUsed(endpoint));
  if (others.length === 0) return '';
  const [first] = others;
  const more = others.length > 1 ? ` and ${others.length - 1} more` : '';
  return `; left out: ${first!.ip} ${byLocal ? first!.local : first!.cluster}${more}`;
}

function whyNone({ target, knowledge }: Asked, verdict: 'reject' | 'drop', report: Report): void {
  const { service, port, via } = target.service!;
  const [namespace, name] = service.name.split('/');
  const get = showingSlices(service.name);
  if (verdict === 'drop') {
    const text = `policy Local, and none of ${port.endpointsTotal} endpoints runs on ${knowledge.node.name}: packets are dropped`;
    const policy = via === 'cluster-ip' ? 'internalTrafficPolicy' : 'externalTrafficPolicy';
    const remedy = [
      editing(service.name, `spec.${policy}: Cluster`),
      `kubectl -n ${namespace} get pods -o wide   # and have one here`,
    ];
    report.fail('endpoints', { code: 'local-none', text, remedy });
  } else if (port.endpointsTotal > 0) {
    const text = `none of ${port.endpointsTotal} endpoints of ${service.name} is ready: connections are refused`;
    report.fail('endpoints', {
      code: 'not-ready',
      text,
      remedy: [`kubectl -n ${namespace} describe pods   # readiness`, get],
    });
  } else if (service.problems.some((text) => text.includes('EndpointSlice')) || service.sliceEndpoints > 0) {
    const inOther = service.sliceFamilies.length > 0 && !service.sliceFamilies.includes(port.family);
    const [problem] = service.problems.filter((text) => text.includes('EndpointSlice'));
    if (inOther && !problem) {
      const text = `${service.name} has ${port.family} addresses, and no endpoint has one`;
      report.fail('endpoints', { code: 'family', text, remedy: [get] });
    } else {
      const text =
        problem ??
        `its slices have ${service.sliceEndpoints} endpoints, and none for the port "${port.name}": the names of ports differ`;
      report.fail('endpoints', { code: 'manual-endpoints', text, remedy: [get] });
    }
  } else {
    const text = `${service.name} has no endpoints (${service.slices} slices): connections are refused`;
    const remedy = [`kubectl -n ${namespace} get pods --show-labels   # compare with spec.selector of ${name}`, get];
    report.fail('endpoints', { code: 'no-endpoints', text, remedy });
  }
}
