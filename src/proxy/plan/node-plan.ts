import {
  type Cidr,
  cidrContains,
  compareIp,
  formatCidr,
  type IpAddress,
  type IpFamily,
  isLoopback,
  parseIp,
  tryParseCidr,
} from '../../core/index.ts';
import { type Node, nodeIpsOf, podCidrTexts, type ServiceCIDR, ZONE_LABEL } from '../../kube/index.ts';
import type { LocalDetector, NodePlan } from './service-plan.ts';

const LOOPBACK = parseIp('127.0.0.0');

/** How traffic of this node's pods is told from other traffic (kube-proxy's --detect-local-mode). */
export type LocalDetection =
  /** By source address; of each family the first CIDR counts. None: nothing counts as local. */
  | { readonly mode: 'ClusterCIDR'; readonly cidrs: readonly Cidr[] }
  /** By source address: the Node object's podCIDRs. */
  | { readonly mode: 'NodeCIDR' }
  | { readonly mode: 'BridgeInterface'; readonly bridgeInterface: string }
  | { readonly mode: 'InterfaceNamePrefix'; readonly interfaceNamePrefix: string };

/**
 * Whether NodePorts answer this node's own processes at loopback addresses. `as-kube-proxy`: as its iptables mode does, at
 * 127.0.0.0/8 as far as `nodePortAddresses` allows it; `always`: also at ::1, and whatever `nodePortAddresses` says.
 */
export type LocalhostNodePorts = 'never' | 'as-kube-proxy' | 'always';

/** What the operator decided, for both families. */
export interface NodeSettings {
  readonly detectLocal: LocalDetection;
  /** The node's address, in place of that of its Node object (--bind-address). @default the Node object's */
  readonly nodeIp?: IpAddress | undefined;
  /** Which bit of the firewall mark asks for masquerading: 0 to 31. */
  readonly masqueradeBit: number;
  readonly masqueradeAll: boolean;
  /** Which local addresses answer on NodePorts; `primary`: the node's own address. An empty list means `all`. */
  readonly nodePortAddresses: 'all' | 'primary' | readonly Cidr[];
  /** @default 'never' */
  readonly localhostNodePorts?: LocalhostNodePorts;
}

/** What decides about the plan of a node. */
export interface NodePlanInput {
  readonly family: IpFamily;
  /** Our Node object; undefined while it is not known. */
  readonly node: Node | undefined;
  readonly settings: NodeSettings;
  /** The addresses on this machine's interfaces, of both families, loopback included. */
  readonly localAddresses: readonly IpAddress[];
  /** The address by which this machine reaches others. Asked for only while the Node object is not known. @default not known either */
  readonly ownSource?: ((family: IpFamily) => IpAddress | undefined) | undefined;
  /** All of the cluster, of both families. @default none known */
  readonly serviceCidrs?: readonly ServiceCIDR[];
}

/** What is the same for all Services of this node, in one family. Unreadable values of the Node object count as missing. */
export function makeNodePlan(input: NodePlanInput): NodePlan {
  const { family, node, settings, localAddresses, ownSource, serviceCidrs = [] } = input;
  const nodeIp = settings.nodeIp?.family === family ? settings.nodeIp : nodeIpOf(node, family);
  const loopbackNodePorts = hasLoopbackNodePorts(family, settings);
  return {
    localDetector: localDetectorOf(settings.detectLocal, node, family),
    // Not a shift: 1 << 31 is negative in JavaScript.
    masqueradeMark: 2 ** settings.masqueradeBit,
    masqueradeAll: settings.masqueradeAll,
    nodePortAddresses: nodePortAddressesOf(
      settings.nodePortAddresses,
      loopbackNodePorts,
      family,
      // A kubelet gives its Node the same, where nobody tells it another: NodePorts outlive a Node that cannot be read.
      nodeIp ?? (node ? undefined : ownSource?.(family)),
      localAddresses,
    ),
    loopbackNodePorts,
    nodeIp,
    podCidrs: podCidrsOf(node).filter(({ address }) => address.family === family),
    serviceCidrs: serviceCidrsOf(serviceCidrs, family),
  };
}

function hasLoopbackNodePorts(family: IpFamily, settings: NodeSettings): boolean {
  const { localhostNodePorts = 'never' } = settings;
  if (localhostNodePorts !== 'as-kube-proxy') return localhostNodePorts === 'always';
  return family === 'IPv4' && allowsLoopback(settings);
}

/** Whether the NodePort addresses include loopback ones: kube-proxy's test looks at 127.0.0.0. */
function allowsLoopback({ nodePortAddresses }: NodeSettings): boolean {
  if (nodePortAddresses === 'primary') return false;
  const ranges =
    nodePortAddresses === 'all' ? [] : nodePortAddresses.filter(({ address }) => address.family === 'IPv4');
  return ranges.length === 0 || ranges.some((cidr) => isLoopback(cidr.address) || cidrContains(cidr, LOOPBACK));
}

/** The node's zone: label `topology.kubernetes.io/zone`; empty when it has none. */
export function zoneOf(node: Node | undefined): string {
  return node?.metadata.labels?.[ZONE_LABEL] ?? '';
}

/** Each range once, in their order; what cannot be read is left out. */
function serviceCidrsOf(objects: readonly ServiceCIDR[], family: IpFamily): Cidr[] {
  const ranges = objects.flatMap(({ spec }) => spec?.cidrs ?? []).flatMap((text) => tryParseCidr(text) ?? []);
  const byText = new Map(ranges.map((range) => [formatCidr(range), range]));
  return [...byText.values()]
    .filter(({ address }) => address.family === family)
    .sort((a, b) => compareIp(a.address, b.address) || a.prefixLength - b.prefixLength);
}

/** The family of the node's first address; IPv4 while it has none. */
export function primaryFamilyOf(node: Node | undefined): IpFamily {
  return nodeIpsOf(node)[0]?.family ?? 'IPv4';
}

/** The address ranges of the node's pods; what cannot be read is left out. */
export function podCidrsOf(node: Node | undefined): Cidr[] {
  return (node ? podCidrTexts(node) : []).flatMap((text) => tryParseCidr(text) ?? []);
}

/** The first InternalIP of the family, else its first ExternalIP. */
function nodeIpOf(node: Node | undefined, family: IpFamily): IpAddress | undefined {
  return nodeIpsOf(node).find((ip) => ip.family === family);
}

function localDetectorOf(detection: LocalDetection, node: Node | undefined, family: IpFamily): LocalDetector {
  switch (detection.mode) {
    case 'ClusterCIDR':
      return detectorByCidr(detection.cidrs, family);
    case 'NodeCIDR':
      return detectorByCidr(podCidrsOf(node), family);
    case 'BridgeInterface':
      return { kind: 'bridge', interfaceName: detection.bridgeInterface };
    case 'InterfaceNamePrefix':
      return { kind: 'prefix', interfacePrefix: detection.interfaceNamePrefix };
  }
}

function detectorByCidr(cidrs: readonly Cidr[], family: IpFamily): LocalDetector {
  const cidr = cidrs.find(({ address }) => address.family === family);
  return cidr ? { kind: 'cidr', cidr } : { kind: 'none' };
}

/** Loopback addresses are among them only when asked for. */
function nodePortAddressesOf(
  wanted: NodeSettings['nodePortAddresses'],
  withLoopback: boolean,
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
    .filter((ip) => (withLoopback || !isLoopback(ip)) && ranges.some((cidr) => cidrContains(cidr, ip)))
    .sort(compareIp)
    .filter((ip, index, sorted) => index === 0 || compareIp(ip, sorted[index - 1]!) !== 0);
}
