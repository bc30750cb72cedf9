import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Agent, createLab, type Lab, type LabNode, type Pod } from '../lab.ts';

export const FAMILIES = ['IPv4', 'IPv6'] as const;

/** Three nodes with a pod each and no routes to each other's pods: two on one link, the third behind a router. */
export interface Cluster {
  readonly lab: Lab;
  readonly nodes: readonly [LabNode, LabNode, LabNode];
  readonly pods: readonly [Pod, Pod, Pod];
  /** Tells all agents what a Node object says from now on. @default the node as it is */
  tell(node: LabNode, change?: { readonly ips?: readonly string[]; readonly podCidrs?: readonly string[] }): void;
  /** The Node object is deleted. */
  forget(node: LabNode): void;
  /** Runs an agent on each node, all at once. */
  start(...flags: string[]): Promise<Agent[]>;
  /** Ends the agents that run. */
  stop(): Promise<void>;
  /** Who answers a pod at the address of another: its name with the source address it saw, or what went wrong. */
  ask(from: Pod, to: Pod, family: 'IPv4' | 'IPv6'): Promise<string>;
}

const PORT = 8080;

export async function createCluster(): Promise<Cluster> {
  const lab = createLab({ podRoutes: false });
  const nodes = [
    lab.addNode({ name: 'node-1' }),
    lab.addNode({ name: 'node-2' }),
    lab.addNode({ name: 'node-3', far: true }),
  ] as const;
  const pods = [nodes[0].addPod('pod-1'), nodes[1].addPod('pod-2'), nodes[2].addPod('pod-3')] as const;
  for (const pod of pods) await pod.serve({ port: PORT });
  const manifests = join(lab.folder, 'manifests');
  mkdirSync(manifests);
  const fileOf = ({ name }: LabNode) => join(manifests, `${name}.yaml`);
  let agents: Agent[] = [];
  const cluster: Cluster = {
    lab,
    nodes,
    pods,
    tell(node, { ips = node.ips, podCidrs = node.podCidrs } = {}) {
      const addresses = ips.map((address) => `{ type: InternalIP, address: "${address}" }`).join(', ');
      const text = `apiVersion: v1
kind: Node
metadata: { name: ${node.name} }
spec: { podCIDRs: [${podCidrs.map((cidr) => `"${cidr}"`).join(', ')}] }
status: { addresses: [${addresses}] }
`;
      writeFileSync(join(manifests, `.${node.name}.new`), text);
      renameSync(join(manifests, `.${node.name}.new`), fileOf(node));
    },
    forget: (node) => rmSync(fileOf(node)),
    async start(...flags) {
      agents = await Promise.all(
        nodes.map((node) => node.startAgent({ manifests, flags: ['--proxy-mode', 'nftables', ...flags] })),
      );
      return agents;
    },
    async stop() {
      await Promise.all(agents.map((agent) => agent.stop()));
      agents = [];
    },
    async ask(from, to, family) {
      const outcome = await from.connect({ ip: to.ip(family), port: PORT }, { timeoutMs: 1000 });
      return outcome.kind === 'answered' ? `${outcome.by} saw ${outcome.source}` : outcome.kind;
    },
  };
  for (const node of nodes) cluster.tell(node);
  return cluster;
}
