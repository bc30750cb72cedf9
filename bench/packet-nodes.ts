import { parseCidr, parseIp } from '../src/core/index.ts';
import type { Plan, ServicePortPlan } from '../src/proxy/index.ts';
import { IptablesDataplane } from '../src/proxy/iptables/index.ts';
import { type IptablesVariant, programName } from '../src/proxy/rules/index.ts';
import { inNetns, writeSysctl } from '../src/sys/index.ts';
import { execIn } from '../test/lab/iptables/fixtures.ts';
import { createNamespace, type TestNamespace } from '../test/lab/namespace.ts';
import { dataplaneIn } from '../test/lab/nftables/fixtures.ts';
import { ip } from '../test/lab/wire.ts';
import { sampleNode, samplePlan } from '../test/samples/sample-plan.ts';
import { inOrderOfChains, UPSTREAM_HOOKS, upstreamLayout } from './upstream-layout.ts';
import { upstreamNftHooks, upstreamNftLayout } from './upstream-nft-layout.ts';

/** A node between a pod of its own and the endpoints of all sample Services. */
export interface NodePath {
  readonly client: TestNamespace;
  readonly node: TestNamespace;
  readonly server: TestNamespace;
  /** Where endpoints listen. */
  readonly port: number;
}

/** Where the nodes' NodePorts answer. */
export const NODE_IP = '192.0.2.1';
const POD_RANGE = '10.244.0.0/16';
/** What such a node knows of itself. */
export const NODE_ADDRESSES = { nodeIp: parseIp(NODE_IP), podCidrs: [parseCidr('10.244.0.0/24')] };
/** So many Services at once: what the kernel takes for an anonymous map grows with all that is in its transaction. */
const UPSTREAM_PIECE = 200;
const LOAD_TIMEOUT_MS = 900_000;

/** A node without rules. Whatever address `sampleService` gives to an endpoint is the server's. */
export function createNodePath(label: string): NodePath {
  const client = createNamespace(`client-${label}`);
  const node = createNamespace(`node-${label}`);
  const server = createNamespace(`server-${label}`);
  inNetns(node.path, () => writeSysctl('net/ipv4/ip_forward', 1));
  ip(node, [
    'link set lo up',
    `link add pod type veth peer name eth0 netns ${client.name}`,
    'address add 10.244.0.1/24 dev pod',
    'link set pod up',
    `link add eth0 type veth peer name eth0 netns ${server.name}`,
    `address add ${NODE_IP}/30 dev eth0`,
    'link set eth0 up',
  ]);
  ip(client, ['address add 10.244.0.2/24 dev eth0', 'link set eth0 up', 'route add default via 10.244.0.1']);
  ip(server, [
    'link set lo up',
    'address add 192.0.2.2/30 dev eth0',
    'link set eth0 up',
    `route add default via ${NODE_IP}`,
    // A local route makes all of them addresses of this host.
    'route add local 10.200.0.0/14 dev lo',
  ]);
  ip(node, ['route add default via 192.0.2.2']);
  return { client, node, server, port: 8080 };
}

/** Writes the rules for Services into a node. */
export type LoadServices = (node: TestNamespace, ports: readonly ServicePortPlan[]) => Promise<void>;

export const loadNftables: LoadServices = async (node, ports) => {
  const dataplane = dataplaneIn(node, 'IPv4');
  await dataplane.resync(planOf(ports));
  dataplane.close();
};

export function loadIptables(variant: IptablesVariant): LoadServices {
  return async (node, ports) => {
    await new IptablesDataplane({ family: 'IPv4', variant, exec: execIn(node) }).resync(planOf(ports));
  };
}

export const loadUpstreamNftables: LoadServices = async (node, ports) => {
  for (let first = 0; first < ports.length; first += UPSTREAM_PIECE) {
    await restore(node, 'nft', ['-f', '-'], upstreamNftLayout(ports.slice(first, first + UPSTREAM_PIECE)));
  }
  await restore(node, 'nft', ['-f', '-'], upstreamNftHooks(NODE_IP));
};

export function loadUpstreamIptables(variant: IptablesVariant): LoadServices {
  return async (node, ports) => {
    const program = programName('IPv4', variant, 'restore');
    await restore(node, program, ['--noflush'], inOrderOfChains(upstreamLayout(ports)));
    await restore(node, program, ['--noflush'], UPSTREAM_HOOKS);
  };
}

/** Both sides are told the same of the node. */
function planOf(ports: readonly ServicePortPlan[]): Plan {
  const localDetector = { kind: 'cidr', cidr: parseCidr(POD_RANGE) } as const;
  const serviceCidrs = [parseCidr('10.96.0.0/12')];
  return samplePlan('IPv4', sampleNode({ ...NODE_ADDRESSES, localDetector, serviceCidrs }), ports);
}

async function restore(node: TestNamespace, program: string, args: readonly string[], input: string): Promise<void> {
  const { status, stderr } = await execIn(node)(program, args, { input, timeoutMs: LOAD_TIMEOUT_MS });
  if (status !== 0) throw new Error(`${program} refused upstream’s layout: ${stderr}`);
}
