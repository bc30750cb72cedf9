import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { IpFamily } from '../../src/core/index.ts';
import { type KubeObject, type Protocol, ZONE_LABEL } from '../../src/kube/index.ts';
import { makeService, makeSlice } from '../fakes/service-objects.ts';
import { addRoute, createLab, type Host, type LabNode, type Target } from '../lab/lab.ts';
import { manifestOf, nodeObject, saveManifest } from '../samples/manifests.ts';
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
  const objects = scenarios.flatMap((scenario, n) => makeObjects(scenario, n, addresses));
  saveManifest(manifests, 'all.yaml', manifestOf(nodeObject(node, { [ZONE_LABEL]: 'zone-a' }), ...objects));
  return {
    node,
    hosts,
    manifests,
    flags: ['--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48', '--localhost-nodeports'],
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

function makeObjects(
  scenario: Scenario,
  n: number,
  addresses: (pod: HostName, family: IpFamily) => string[],
): KubeObject[] {
  const { type, externalIP, loadBalancerSourceRanges, ...spec } = scenario.spec;
  const ports = (scenario.protocols ?? ['TCP']).map((protocol) => ({ name: protocol.toLowerCase(), protocol }));
  const name = `test/scenario-${n}`;
  const addressesOf = (kind: keyof typeof SERVICE_RANGES) => FAMILIES.map((family) => addressOf(kind, n, family));
  const clusterIPs = addressesOf('clusterIP');
  const service = makeService(
    name,
    {
      ...spec,
      type: type ?? 'ClusterIP',
      clusterIP: clusterIPs[0]!,
      clusterIPs,
      ipFamilies: ['IPv4', 'IPv6'],
      ports: ports.map((port) => ({ ...port, port: SERVICE_PORT, ...(type && { nodePort: nodePortOf(n) }) })),
      ...(externalIP && { externalIPs: addressesOf('externalIP') }),
      ...(loadBalancerSourceRanges && { loadBalancerSourceRanges: Object.values(loadBalancerSourceRanges) }),
    },
    type === 'LoadBalancer' ? { vips: addressesOf('loadBalancerVIP') } : {},
  );
  const slices = FAMILIES.map((addressType) => {
    const endpoints = scenario.endpoints.map(({ pod, conditions = { ready: true }, hints }) => ({
      addresses: addresses(pod, addressType),
      conditions,
      nodeName: pod === 'far' ? 'node-2' : 'node-1',
      ...(hints && { hints }),
    }));
    return makeSlice(name, endpoints, { addressType, ports: ports.map((port) => ({ ...port, port: TARGET_PORT })) });
  });
  return [service, ...slices];
}
