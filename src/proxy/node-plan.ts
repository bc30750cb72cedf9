import {
  type Cidr,
  cidrContains,
  compareIp,
  type IpAddress,
  type IpFamily,
  isLoopback,
  tryParseIp,
} from '../core/index.ts';
import type { Node } from '../kube/index.ts';
import type { LocalDetector, NodePlan } from './service-plan.ts';
import { tryParseCidr } from './try-parse-cidr.ts';

/** What the operator decided, for both families. */
export interface NodeSettings {
  /** Where pods have their addresses in the whole cluster; empty: the node's own pod CIDRs tell. */
  readonly clusterCidrs: readonly Cidr[];
  /** Which bit of the firewall mark asks for masquerading: 0 to 31. */
  readonly masqueradeBit: number;
  readonly masqueradeAll: boolean;
  /** Which local addresses answer on NodePorts; `primary`: the node's own address. An empty list means `all`. */
  readonly nodePortAddresses: 'all' | 'primary' | readonly Cidr[];
}

export interface NodePlanInput {
  readonly family: IpFamily;
  /** Our Node object; undefined while it is not known. */
  readonly node: Node | undefined;
  readonly settings: NodeSettings;
  /** The addresses on this machine's interfaces, of both families, loopback included. */
  readonly localAddresses: readonly IpAddress[];
}

/** What is the same for all Services of this node, in one family. Unreadable values of the Node object count as missing. */
export function makeNodePlan({ family, node, settings, localAddresses }: NodePlanInput): NodePlan {
  const nodeIp = nodeIpOf(node, family);
  return {
    localDetector: localDetectorOf(settings.clusterCidrs, node, family),
    // Not a shift: 1 << 31 is negative in JavaScript.
    masqueradeMark: 2 ** settings.masqueradeBit,
    masqueradeAll: settings.masqueradeAll,
    nodePortAddresses: nodePortAddressesOf(settings.nodePortAddresses, family, nodeIp, localAddresses),
    nodeIp,
  };
}

/** The node's zone: label `topology.kubernetes.io/zone`; empty when it has none. */
export function zoneOf(node: Node | undefined): string {
  return node?.metadata.labels?.['topology.kubernetes.io/zone'] ?? '';
}

/** The first InternalIP of the family, else its first ExternalIP. */
function nodeIpOf(node: Node | undefined, family: IpFamily): IpAddress | undefined {
  for (const type of ['InternalIP', 'ExternalIP']) {
    for (const entry of node?.status?.addresses ?? []) {
      const ip = entry.type === type ? tryParseIp(entry.address) : undefined;
      if (ip?.family === family) return ip;
    }
  }
  return undefined;
}

function localDetectorOf(clusterCidrs: readonly Cidr[], node: Node | undefined, family: IpFamily): LocalDetector {
  const podCidrs = node?.spec?.podCIDRs ?? (node?.spec?.podCIDR ? [node.spec.podCIDR] : []);
  const cidr = [...clusterCidrs, ...podCidrs.map(tryParseCidr)].find((cidr) => cidr?.address.family === family);
  return cidr ? { kind: 'cidr', cidr } : { kind: 'none' };
}

/**
 * Loopback addresses are never among them: a packet to a NodePort of 127.0.0.1 would have to leave the loopback
 * interface, which the kernel forbids (and ::1 always will).
 */
function nodePortAddressesOf(
  wanted: NodeSettings['nodePortAddresses'],
  family: IpFamily,
  nodeIp: IpAddress | undefined,
  localAddresses: readonly IpAddress[],
): NodePlan['nodePortAddresses'] {
  if (wanted === 'all') return 'all';
  // kube-proxy opens NodePorts on every address while it knows no node IP; here nothing is opened by surprise.
  if (wanted === 'primary') return nodeIp ? [nodeIp] : [];
  const ranges = wanted.filter((cidr) => cidr.address.family === family);
  // As in kube-proxy: a list that says nothing about this family does not restrict it.
  if (ranges.length === 0 || ranges.some((cidr) => cidr.prefixLength === 0)) return 'all';
  return localAddresses
    .filter((ip) => !isLoopback(ip) && ranges.some((cidr) => cidrContains(cidr, ip)))
    .sort(compareIp)
    .filter((ip, index, sorted) => index === 0 || compareIp(ip, sorted[index - 1]!) !== 0);
}
