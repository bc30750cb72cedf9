import { join } from 'node:path';
import type { IpFamily } from '../../../src/core/index.ts';
import { nodeObject } from '../../samples/manifests.ts';
import { type Agent, type AgentOptions, createLab, type Lab, type LabNode, type Pod } from '../lab.ts';
import { type ClusterObjects, manifestObjects } from './cluster-objects.ts';

export const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

/** Where pods serve. */
export const POD_PORT = 8080;

/** Three nodes with a pod each and no routes to each other's pods: two on one link, the third behind a router. */
export interface Cluster {
  readonly lab: Lab;
  readonly nodes: readonly [LabNode, LabNode, LabNode];
  readonly pods: readonly [Pod, Pod, Pod];
  readonly objects: ClusterObjects;
  /** Tells all agents what a Node object says from now on. @default the node as it is */
  tell(node: LabNode, change?: { readonly ips?: readonly string[]; readonly podCidrs?: readonly string[] }): void;
  /** The Node object is deleted. */
  forget(node: LabNode): void;
  /** Runs an agent on each node, all at once, and waits until they have synced. */
  start(...flags: string[]): Promise<Agent[]>;
  /** Ends the agent of a node and runs another one. */
  restart(node: LabNode, options: RestartOptions): Promise<Agent>;
  /** The agent that runs on a node. */
  agentOf(node: LabNode): Agent;
  /** Ends the agents that run. */
  stop(): Promise<void>;
  /** Who answers a pod at the address of another: its name with the source address it saw, or what went wrong. */
  ask(from: Pod, to: Pod, family: IpFamily): Promise<string>;
}

export interface RestartOptions {
  readonly by: 'SIGTERM' | 'SIGKILL';
  /** In place of those of the agent before. */
  readonly flags: readonly string[];
  /** What to wait for. @default synced */
  readonly until?: AgentOptions['until'];
}

export interface ClusterOptions {
  /** @default dual stack */
  readonly families?: readonly IpFamily[];
  /** Where the agents read their objects. @default manifests */
  readonly objects?: (lab: Lab) => ClusterObjects | Promise<ClusterObjects>;
}

/** Makes the nodes, their pods, and their Node objects; no agent runs yet. */
export async function createCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { families = FAMILIES, objects: objectsOf = ({ folder }) => manifestObjects(join(folder, 'manifests')) } =
    options;
  const lab = createLab({ podRoutes: false });
  const ofFamilies = (texts: readonly string[]) => texts.filter((text) => families.includes(familyOf(text)));
  const addNode = (number: number, segment: 50 | 60) =>
    lab.addNode({
      name: `node-${number}`,
      far: segment === 60,
      ips: ofFamilies([`192.168.${segment}.${number}`, `fd00:${segment}::${number}`]),
      podCidrs: ofFamilies([`10.244.${number}.0/24`, `fd00:10:244:${number}::/64`]),
    });
  const nodes = [addNode(1, 50), addNode(2, 50), addNode(3, 60)] as const;
  const pods = [nodes[0].addPod('pod-1'), nodes[1].addPod('pod-2'), nodes[2].addPod('pod-3')] as const;
  for (const pod of pods) {
    await pod.serve({ port: POD_PORT });
    await pod.serve({ port: POD_PORT, protocol: 'UDP' });
  }
  const objects = await objectsOf(lab);
  const agents = new Map<string, Agent>();
  const startOn = async (node: LabNode, flags: readonly string[], until: AgentOptions['until'] = 'synced') => {
    const { agentOptions } = objects;
    const agent = await node.startAgent({
      ...agentOptions,
      flags: ['--proxy-mode', 'nftables', ...(agentOptions.flags ?? []), ...flags],
      until,
    });
    agents.set(node.name, agent);
    return agent;
  };
  const cluster: Cluster = {
    lab,
    nodes,
    pods,
    objects,
    tell: ({ name, ips, podCidrs }, change) => objects.put(nodeObject({ name, ips, podCidrs, ...change })),
    forget: (node) => objects.delete(nodeObject(node)),
    start: (...flags) => Promise.all(nodes.map((node) => startOn(node, flags))),
    async restart(node, { by, flags, until }) {
      const agent = cluster.agentOf(node);
      await (by === 'SIGTERM' ? agent.stop() : agent.kill());
      return await startOn(node, flags, until);
    },
    agentOf({ name }) {
      const agent = agents.get(name);
      if (!agent) throw new Error(`No agent runs on ${name}`);
      return agent;
    },
    async stop() {
      await Promise.all([...agents.values()].map((agent) => agent.stop()));
      agents.clear();
    },
    async ask(from, to, family) {
      const outcome = await from.connect({ ip: to.ip(family), port: POD_PORT }, { timeoutMs: 1000 });
      return outcome.kind === 'answered' ? `${outcome.by} saw ${outcome.source}` : outcome.kind;
    },
  };
  for (const node of nodes) cluster.tell(node);
  return cluster;
}

/** The interface by which a node's packets to a pod leave. */
export function wayTo(node: LabNode, pod: Pod, family: IpFamily): string {
  const text = node.namespace.run('ip', family === 'IPv4' ? '-4' : '-6', 'route', 'get', pod.ip(family));
  return / dev (\S+)/.exec(text)?.[1] ?? text;
}

/** The addresses of a node in one family, also those of its tunnel and its bridge. */
export function addressesOf(node: LabNode, family: IpFamily): string[] {
  const text = node.namespace.run('ip', '-o', family === 'IPv4' ? '-4' : '-6', 'address', 'show');
  return [...text.matchAll(/ inet6? ([\da-f.:]+)\//g)].map(([, address]) => address!);
}

function familyOf(text: string): IpFamily {
  return text.includes(':') ? 'IPv6' : 'IPv4';
}
