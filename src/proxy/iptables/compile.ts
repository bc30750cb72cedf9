import {
  addressBits,
  cidrContains,
  formatCidr,
  formatIp,
  type IpAddress,
  networkOf,
  protocolWord,
  type Steps,
} from '../../core/index.ts';
import type { Endpoint, NodePlan, ServicePortPlan, Verdict } from '../index.ts';
import { type Chain, formatRule, podMatch, type RuleParts, refuse, type TreeKey } from '../rules/index.ts';
import { balanceRules, endpointChains } from './balance.ts';
import { addressPortKey, portKey } from './key-spaces.ts';
import { type ServiceChainNames, serviceChainNames, type TREE_PREFIX } from './names.ts';

/** The trees that lead packets to the chains of Services. */
export type TreeName = keyof typeof TREE_PREFIX;

/** A rule a Service port wants in a tree. */
export interface Claim {
  readonly tree: TreeName;
  readonly key: TreeKey;
  readonly rule: string;
}

/** What one Service port is in iptables. */
export interface CompiledPort {
  /** Of its plan, for messages. */
  readonly name: string;
  /** Its own chains; all are in table nat. */
  readonly chains: ReadonlyMap<string, Chain>;
  /** At most one for each tree and key. */
  readonly claims: readonly Claim[];
}

/** Compiles one Service port. Pure; the result depends on nothing but the two plans. */
export function* compilePort(port: ServicePortPlan, node: NodePlan): Steps<CompiledPort> {
  const names = serviceChainNames(port.name, protocolWord(port.protocol));
  const chains = yield* compileChains(port, node, names);
  return { name: port.name, chains, claims: yield* compileClaims(port, names) };
}

function* compileChains(
  port: ServicePortPlan,
  node: NodePlan,
  names: ServiceChainNames,
): Steps<ReadonlyMap<string, Chain>> {
  const chains = new Map<string, Chain>();
  const owner = `Service port "${port.name}"`;
  const { clusterEndpoints, localEndpoints } = port;
  const internal = internalChain(port, names);
  const balance = function* (name: string, endpoints: readonly Endpoint[]): Steps<void> {
    if (endpoints.length === 0) return;
    const masquerade = name === internal ? masqueradeInternal(port, node) : [];
    chains.set(name, { rules: [...masquerade, ...(yield* balanceRules(port, endpoints))], owner });
  };
  if (hasExternalChain(port)) chains.set(names.external, { rules: externalRules(port, node, names), owner });
  if (hasFirewallChain(port)) chains.set(names.firewall, { rules: yield* firewallRules(port, node, names), owner });
  yield* balance(names.cluster, clusterEndpoints);
  yield* balance(names.local, localEndpoints);
  for (const [name, chain] of yield* endpointChains(port, [...clusterEndpoints, ...localEndpoints], owner)) {
    chains.set(name, chain);
  }
  return chains;
}

function* compileClaims(port: ServicePortPlan, names: ServiceChainNames): Steps<readonly Claim[]> {
  const claims = new Map<string, Claim>();
  // Of two claims for one key the first counts: an external IP that is a load-balancer VIP too, say.
  const claim = (tree: TreeName, key: TreeKey, parts: RuleParts) => {
    const id = `${tree} ${key.text}`;
    if (!claims.has(id)) claims.set(id, { tree, key, rule: formatRule(parts) });
  };
  const protocol = protocolWord(port.protocol);
  const to = (ip: IpAddress) => ({ destination: hostMatch('-d', ip), protocol, destinationPort: port.port });
  const keyOf = (ip: IpAddress) => addressPortKey(ip, protocol, port.port);
  const external = hasExternalChain(port);

  const internal = internalChain(port, names);
  if (internal) {
    const comment = `${port.name} cluster IP`;
    claim('serviceVips', keyOf(port.clusterIp), { ...to(port.clusterIp), comment, target: `-j ${internal}` });
  } else {
    claim('refusedVips', keyOf(port.clusterIp), { ...to(port.clusterIp), ...refusal(port, port.internalVerdict) });
  }

  for (const ip of port.externalIps) {
    yield;
    const comment = `${port.name} external IP`;
    if (external) claim('serviceVips', keyOf(ip), { ...to(ip), comment, target: `-j ${names.external}` });
  }
  for (const ip of port.loadBalancerVips) {
    yield;
    const entry = hasFirewallChain(port) ? names.firewall : names.external;
    const comment = `${port.name} loadbalancer IP`;
    if (external) claim('serviceVips', keyOf(ip), { ...to(ip), comment, target: `-j ${entry}` });
    if (!hasFirewallChain(port)) continue;
    const refused = `${port.name} traffic not accepted by ${names.firewall}`;
    claim('restrictedVips', keyOf(ip), { ...to(ip), comment: refused, target: '-j DROP' });
  }
  if (port.externalVerdict !== 'forward') {
    for (const ip of [...port.externalIps, ...port.loadBalancerVips]) {
      yield;
      claim('refusedExternalVips', keyOf(ip), { ...to(ip), ...refusal(port, port.externalVerdict) });
    }
  }

  if (port.nodePort !== 0) {
    const key = portKey(protocol, port.nodePort);
    const match = { protocol, destinationPort: port.nodePort };
    if (external) claim('nodePorts', key, { ...match, comment: port.name, target: `-j ${names.external}` });
    if (port.externalVerdict !== 'forward') {
      const localOnly = { match: '-m addrtype --dst-type LOCAL' };
      claim('refusedNodePorts', key, { ...match, ...localOnly, ...refusal(port, port.externalVerdict) });
    }
  }
  if (port.healthCheckNodePort !== 0) {
    // Always served over HTTP, whatever the protocol of the Service.
    const parts = { protocol: 'tcp', destinationPort: port.healthCheckNodePort, target: '-j ACCEPT' };
    const comment = `${port.name} health check node port`;
    claim('healthChecks', portKey('tcp', port.healthCheckNodePort), { ...parts, comment });
  }
  return [...claims.values()];
}

/** Where the ClusterIP leads; undefined when it is refused. */
function internalChain(port: ServicePortPlan, names: ServiceChainNames): string | undefined {
  if (port.internalVerdict !== 'forward') return undefined;
  return port.internalPolicy === 'Local' ? names.local : names.cluster;
}

/** It exists also when only pods and the node itself may use it: policy Local without a local endpoint. */
function hasExternalChain(port: ServicePortPlan): boolean {
  const reachable = port.nodePort !== 0 || port.externalIps.length > 0 || port.loadBalancerVips.length > 0;
  return port.hasAnyEndpoints && reachable;
}

function hasFirewallChain(port: ServicePortPlan): boolean {
  return port.hasAnyEndpoints && port.loadBalancerVips.length > 0 && port.sourceRanges.length > 0;
}

/** Answers must come back through this node, so what does not come from a pod of it gets this node's address. */
function masqueradeInternal(port: ServicePortPlan, node: NodePlan): string[] {
  const outside = node.masqueradeAll ? {} : podMatch(node.localDetector)?.notFromPod;
  if (!outside) return [];
  return [
    formatRule({
      ...outside,
      // External traffic may share this chain and has its own rule for masquerading.
      destination: hostMatch('-d', port.clusterIp),
      protocol: protocolWord(port.protocol),
      comment: `${port.name} cluster IP`,
      destinationPort: port.port,
      target: '-j KUBE-MARK-MASQ',
    }),
  ];
}

function externalRules(port: ServicePortPlan, node: NodePlan, names: ServiceChainNames): string[] {
  const to = (what: string) => `${what} for ${port.name} external destinations`;
  const rules: string[] = [];
  const add = (parts: RuleParts) => rules.push(formatRule(parts));
  if (port.externalPolicy === 'Cluster') {
    add({ comment: to('masquerade traffic'), target: '-j KUBE-MARK-MASQ' });
    if (port.clusterEndpoints.length > 0) add({ target: `-j ${names.cluster}` });
    return rules;
  }
  // Pods and the node itself may use every endpoint under policy Local too: only traffic from outside the cluster has
  // passed a load balancer that chose this node.
  if (port.clusterEndpoints.length > 0) {
    const pods = podMatch(node.localDetector)?.fromPod;
    const fromNode = '-m addrtype --src-type LOCAL';
    if (pods) add({ ...pods, comment: to('pod traffic'), target: `-j ${names.cluster}` });
    add({ comment: to('masquerade LOCAL traffic'), match: fromNode, target: '-j KUBE-MARK-MASQ' });
    add({ comment: to('route LOCAL traffic'), match: fromNode, target: `-j ${names.cluster}` });
  }
  // Without a local endpoint the packet falls off the end untranslated, and the filter table drops it.
  if (port.localEndpoints.length > 0) add({ target: `-j ${names.local}` });
  return rules;
}

function* firewallRules(port: ServicePortPlan, node: NodePlan, names: ServiceChainNames): Steps<string[]> {
  const target = `-j ${names.external}`;
  const rules: string[] = [];
  for (const { address, prefixLength } of port.sourceRanges) {
    yield;
    const range = formatCidr({ address: networkOf(address, prefixLength), prefixLength });
    const source = prefixLength === 0 ? undefined : `-s ${range}`;
    rules.push(formatRule({ source, comment: `${port.name} loadbalancer IP`, target }));
  }
  // A node that holds the VIP as an address of its own uses it as source when it connects to it.
  const { nodeIp } = node;
  if (nodeIp && port.sourceRanges.some((range) => cidrContains(range, nodeIp))) {
    for (const vip of port.loadBalancerVips) {
      rules.push(formatRule({ source: hostMatch('-s', vip), comment: `${port.name} loadbalancer IP`, target }));
    }
  }
  rules.push(formatRule({ comment: `other traffic to ${port.name} will be dropped by KUBE-PROXY-FIREWALL` }));
  return rules;
}

/** Comment and target of a rule that refuses. */
function refusal(port: ServicePortPlan, verdict: Verdict): Pick<RuleParts, 'comment' | 'target'> {
  if (verdict === 'drop') return { comment: `${port.name} has no local endpoints`, target: '-j DROP' };
  return {
    comment: `${port.name} has no endpoints`,
    target: refuse(port.clusterIp.family, protocolWord(port.protocol)),
  };
}

function hostMatch(flag: '-s' | '-d', ip: IpAddress): string {
  return `${flag} ${formatIp(ip)}/${addressBits(ip.family)}`;
}
