import type { Cidr, IpFamily } from '../../core/index.ts';
import type { KubeProxyConfig } from '../file/kube-proxy-config.ts';
import { type BindAddress, isUnspecified } from '../values/bind-address.ts';

/** What is known about the node once its Node object was seen and the kernel was looked at. */
export interface NodeFamilies {
  readonly primary: IpFamily;
  /** Whether both families can be used on this node. */
  readonly dualStack: boolean;
  /** The Node object's podCIDRs. */
  readonly podCidrs: readonly Cidr[];
}

/** Settings that do not fit the node. Sentences to log. */
export interface FamilyProblems {
  /** Nothing is wrong: what many would rather have. */
  readonly advice: readonly string[];
  /** The proxy runs all the same. */
  readonly warnings: readonly string[];
  /** It would do nothing useful: do not start. */
  readonly fatal: readonly string[];
}

/** Finds settings of an IP family that the node does not have, or that leave a family out. kube-proxy's list. */
export function checkFamilies(config: KubeProxyConfig, node: NodeFamilies): FamilyProblems {
  const advice: string[] = [];
  const warnings: string[] = [];
  const fatal: string[] = [];
  const { primary, dualStack } = node;
  const other: IpFamily = primary === 'IPv4' ? 'IPv6' : 'IPv4';
  const clusterCidrs = config.detectLocal.mode === 'ClusterCIDR' ? config.detectLocal.cidrs : [];
  const onlyOther = (cidrs: readonly Cidr[]): boolean =>
    cidrs.length > 0 && cidrs.every((cidr) => cidr.address.family === other);

  if (config.nodePortAddresses === 'all') {
    advice.push(
      'nodePortAddresses is not set: NodePorts are open on all local addresses. Consider --nodeport-addresses=primary',
    );
  }
  warnings.push(...nodePortWarnings(config, node, clusterCidrs));
  if (onlyOther(clusterCidrs)) {
    const text = `The cluster is ${primary}-primary but clusterCIDR has only ${other} addresses`;
    (dualStack ? warnings : fatal).push(text);
  }
  if (onlyOther(node.podCidrs)) {
    const text = `The cluster is ${primary}-primary but the Node's podCIDRs have only ${other} addresses`;
    (config.detectLocal.mode === 'NodeCIDR' ? fatal : warnings).push(text);
  }
  if (!dualStack) {
    if (onlyOther(config.ipvs.excludeCidrs)) {
      warnings.push(`This node has only ${primary} but ipvs.excludeCIDRs has only ${other} addresses`);
    }
    for (const name of ['healthzBindAddress', 'metricsBindAddress'] as const) {
      if (isOfFamily(config[name], other))
        warnings.push(`This node has only ${primary} but ${name} is an ${other} address`);
    }
  }
  return { advice, warnings, fatal };
}

function nodePortWarnings(config: KubeProxyConfig, node: NodeFamilies, clusterCidrs: readonly Cidr[]): string[] {
  const { nodePortAddresses, ipvs } = config;
  if (nodePortAddresses === 'primary' || nodePortAddresses === 'all') return [];
  const looksDualStack = [clusterCidrs, nodePortAddresses, ipvs.excludeCidrs, node.podCidrs].some(hasBothFamilies);
  const primaryCount = nodePortAddresses.filter((cidr) => cidr.address.family === node.primary).length;
  const everyLocal = (family: string): string => `NodePorts are open on all local ${family} addresses`;
  const other = node.primary === 'IPv4' ? 'IPv6' : 'IPv4';
  if (primaryCount === 0) {
    return [
      `The cluster is ${node.primary}-primary but nodePortAddresses has only ${other} addresses: ${everyLocal(node.primary)}`,
    ];
  }
  return looksDualStack && primaryCount === nodePortAddresses.length
    ? [`The cluster looks dual-stack but nodePortAddresses has only ${node.primary} addresses: ${everyLocal(other)}`]
    : [];
}

function hasBothFamilies(cidrs: readonly Cidr[]): boolean {
  return new Set(cidrs.map((cidr) => cidr.address.family)).size === 2;
}

/** The unspecified address listens in both families where it can. */
function isOfFamily(address: BindAddress | undefined, family: IpFamily): boolean {
  return address !== undefined && address.ip.family === family && !isUnspecified(address.ip);
}
