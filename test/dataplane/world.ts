import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { IpFamily } from '../../src/core/index.ts';
import type { EndpointSlice, Node, Protocol, Service } from '../../src/kube/index.ts';
import { addRoute, createLab, type Host, type LabNode, type Target } from '../lab/lab.ts';
import type { Destination, HostName, Scenario } from './scenario.ts';

/** Where pods serve; Services have port 80. */
const TARGET_PORT = 8080;
const SERVICE_PORT = 80;
export const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

/** One lab with the objects of all scenarios: node-1 is the node under test, node-2 only hosts a pod. */
export interface World {
  readonly node: LabNode;
  readonly hosts: Readonly<Record<HostName, Host>>;
  /** The folder of manifests. */
  readonly manifests: string;
  /** Flags for the agent of node-1. */
  readonly flags: readonly string[];
  /** Where a scenario's Service is reached. */
  target(scenario: Scenario, destination: Destination, family: IpFamily, protocol: Protocol): Target;
}

/** Builds hosts and manifests. Pods serve `protocols`. */
export async function createWorld(scenarios: readonly Scenario[], protocols: readonly Protocol[]): Promise<World> {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  const other = lab.addNode({ name: 'node-2' });
  const hosts = {
    'web-1': node.addPod('web-1'),
    'web-2': node.addPod('web-2'),
    client: node.addPod('client'),
    far: other.addPod('far'),
    'node-1': node,
    outside: lab.addClient('outside', { ips: ['192.168.50.101', 'fd00:50::101'] }),
    stranger: lab.addClient('stranger', { ips: ['192.168.50.102', 'fd00:50::102'] }),
  };
  for (const pod of [hosts['web-1'], hosts['web-2'], hosts.far]) {
    for (const protocol of protocols) await pod.serve({ port: TARGET_PORT, protocol });
  }
  for (const client of [other, hosts.outside, hosts.stranger]) {
    // What routers would do: Service addresses lead to a node. Nothing on node-2 knows them.
    for (const range of Object.values(SERVICE_RANGES).flatMap((ranges) => Object.values(ranges))) {
      addRoute(client, range, node);
    }
    if (client === other) continue;
    // Answers of pods that saw the client's own address come from the pod's node; the way back must not matter.
    for (const cidr of node.podCidrs) addRoute(client, cidr, node);
  }
  limitIcmpErrors(node, false);
  const manifests = join(lab.folder, 'manifests');
  mkdirSync(manifests);
  const addresses = (pod: HostName, family: IpFamily) => [hosts[pod].ip(family)];
  const objects = [nodeObject(node), ...scenarios.flatMap((scenario, n) => makeObjects(scenario, n, addresses))];
  writeFileSync(
    join(manifests, 'all.json'),
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }, null, 1),
  );
  return {
    node,
    hosts,
    manifests,
    flags: ['--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48'],
    target(scenario, destination, family, protocol) {
      const n = scenarios.indexOf(scenario);
      if (destination === 'nodePortOfLoopback') {
        return { ip: family === 'IPv4' ? '127.0.0.1' : '::1', port: nodePortOf(n), protocol };
      }
      if (destination === 'nodePort') return { ip: node.ip(family), port: nodePortOf(n), protocol };
      return { ip: addressOf(destination, n, family), port: SERVICE_PORT, protocol };
    },
  };
}

/**
 * Linux sends one client six ICMP errors at once and then one a second. Off where scenarios share clients and UDP is refused;
 * on, as on every node, where the limit must not matter.
 */
export function limitIcmpErrors(node: LabNode, on: boolean): void {
  const milliseconds = on ? 1000 : 0;
  const settings = ['net.ipv4.icmp_ratelimit', 'net.ipv6.icmp.ratelimit'];
  node.namespace.run('sysctl', '-qw', ...settings.map((name) => `${name}=${milliseconds}`));
}

const SERVICE_RANGES = {
  clusterIP: { IPv4: '10.96.0.0/16', IPv6: 'fd00:96::/64' },
  externalIP: { IPv4: '203.0.113.0/24', IPv6: '2001:db8:203::/64' },
  loadBalancerVIP: { IPv4: '198.51.100.0/24', IPv6: '2001:db8:198::/64' },
} as const;

/** The n-th address of a range, leaving the first ones to gateways. */
function addressOf(kind: keyof typeof SERVICE_RANGES, n: number, family: IpFamily): string {
  const prefix = SERVICE_RANGES[kind][family].split('/')[0]!;
  const host = 10 + n;
  return family === 'IPv4' ? prefix.replace(/\.0$/, `.${host}`) : `${prefix}${host.toString(16)}`;
}

function nodePortOf(n: number): number {
  return 30_000 + n;
}

function nodeObject(node: LabNode): Node & { apiVersion: string } {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: node.name, namespace: '', labels: { 'topology.kubernetes.io/zone': 'zone-a' } },
    spec: { podCIDRs: node.podCidrs },
    status: { addresses: node.ips.map((address) => ({ type: 'InternalIP', address })) },
  };
}

function makeObjects(
  scenario: Scenario,
  n: number,
  addresses: (pod: HostName, family: IpFamily) => string[],
): object[] {
  const { type, externalIP, loadBalancerSourceRanges, ...spec } = scenario.spec;
  const ports = (scenario.protocols ?? ['TCP']).map((protocol) => ({ name: protocol.toLowerCase(), protocol }));
  const name = `scenario-${n}`;
  const clusterIPs = FAMILIES.map((family) => addressOf('clusterIP', n, family));
  const service: Service & { apiVersion: string } = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'test' },
    spec: {
      ...spec,
      type: type ?? 'ClusterIP',
      clusterIP: clusterIPs[0]!,
      clusterIPs,
      ipFamilies: ['IPv4', 'IPv6'],
      ports: ports.map((port) => ({ ...port, port: SERVICE_PORT, ...(type && { nodePort: nodePortOf(n) }) })),
      ...(externalIP && { externalIPs: FAMILIES.map((family) => addressOf('externalIP', n, family)) }),
      ...(loadBalancerSourceRanges && { loadBalancerSourceRanges: Object.values(loadBalancerSourceRanges) }),
    },
    ...(type === 'LoadBalancer' && {
      status: {
        loadBalancer: { ingress: FAMILIES.map((family) => ({ ip: addressOf('loadBalancerVIP', n, family) })) },
      },
    }),
  };
  const slices = FAMILIES.map((family): EndpointSlice & { apiVersion: string } => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${family.toLowerCase()}`,
      namespace: 'test',
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType: family,
    ports: ports.map((port) => ({ ...port, port: TARGET_PORT })),
    endpoints: scenario.endpoints.map(({ pod, conditions = { ready: true }, hints }) => ({
      addresses: addresses(pod, family),
      conditions,
      nodeName: pod === 'far' ? 'node-2' : 'node-1',
      ...(hints && { hints }),
    })),
  }));
  return [service, ...slices];
}
