import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Agent, type ConfList, createLab, type Host, type LabNode, type Pod } from '../test/lab/lab.ts';
import { claim } from './claim.ts';
import type { Screen } from './screen.ts';
import { FOLDER, NAME_PREFIX } from './state.ts';

/** The addresses of demo/manifests/. */
export const WEB_SERVICE = { ip: '10.96.0.10', port: 80, nodePort: 30080 } as const;
export const EMPTY_SERVICE = { ip: '10.96.0.20', port: 80 } as const;
/** Where the web pods listen, and the addresses the plugin gives them on node-2: the range of its pods starts there. */
export const WEB_PORT = 8080;
export const WEB_PODS = [
  { name: 'web-1', ip: '10.244.2.11' },
  { name: 'web-2', ip: '10.244.2.12' },
  { name: 'web-3', ip: '10.244.2.13' },
] as const;
/** The pods of node-2, as its Node object in demo/manifests/ says. */
export const WEB_POD_CIDR = '10.244.2.0/24';

const ROUTES = ['--routes', 'auto'];

/** Everything the demo shows something with. */
export interface Cluster {
  /** The node of the client pod. */
  readonly node: LabNode;
  /** The node of the web pods. */
  readonly webNode: LabNode;
  readonly webPods: readonly Pod[];
  readonly client: Pod;
  /** A machine on the nodes' network that is not part of the cluster. */
  readonly outside: Host;
  /** The agent that runs now on `node`. */
  agent: Agent;
  /** Stops it and starts another with these flags. */
  restartAgent(flags: readonly string[]): Promise<void>;
  /** Ends the agents of both nodes. */
  stop(): Promise<void>;
  /** The copy of demo/manifests/ that the agents follow. */
  readonly manifests: string;
}

/** Makes nodes, pods and clients of namespaces, and starts the agents. */
export async function buildCluster(screen: Screen, options: { readonly keep: boolean }): Promise<Cluster> {
  const source = join(dirname(fileURLToPath(import.meta.url)), '../demo');
  const manifests = join(FOLDER, 'manifests');
  mkdirSync(FOLDER, { recursive: true });
  cpSync(join(source, 'manifests'), manifests, { recursive: true });

  screen.doing('Making two nodes and a machine outside');
  needBridgeNetfilter();
  const lab = createLab({ namePrefix: NAME_PREFIX, folder: FOLDER, podRoutes: false });
  const [node, webNode] = ['node-1', 'node-2'].map((name, index) => {
    const conflist = JSON.parse(readFileSync(join(source, `${name}.conflist`), 'utf8')) as ConfList;
    return lab.addNode({ name, podCidrs: [`10.244.${index + 1}.0/24`], conflist });
  }) as [LabNode, LabNode];
  const outside = lab.addClient('outside');
  screen.done(`on one wire: node-1 (${node.ip()}), node-2 (${webNode.ip()}), a client (${outside.ip()})`);

  screen.doing('Attaching pods');
  const client = node.addPod('client');
  const webPods: Pod[] = [];
  for (const { name, ip } of WEB_PODS) {
    const pod = webNode.addPod(name);
    claim(pod.ip() === ip, `The plugin gives ${name} the address ${ip} of node-2.conflist`, pod.ip());
    await pod.serve({ port: WEB_PORT });
    webPods.push(pod);
  }
  screen.done('client attached to node-1, web-1, web-2 and web-3 to node-2, by nodeplane-cni');

  screen.doing('Starting the agents');
  const start = (on: LabNode, flags: readonly string[]) =>
    on.startAgent({ manifests, flags: [...ROUTES, ...flags], detached: options.keep });
  const [agent, webAgent] = await Promise.all([start(node, []), start(webNode, [])]);
  const cluster: Cluster = {
    node,
    webNode,
    webPods,
    client,
    outside,
    manifests,
    agent,
    async restartAgent(flags) {
      await cluster.agent.stop();
      cluster.agent = await start(node, flags);
    },
    async stop() {
      await Promise.all([cluster.agent.stop(), webAgent.stop()]);
    },
  };
  screen.done('a nodeplane agent on each node follows the manifests, first sync done');
  return cluster;
}

/**
 * An answer from a pod to a pod of the same bridge passes the node's connection tracking, which puts the Service's address
 * back, only with this kernel module. Loading it is a node's administrator's job; in the demo that is us.
 */
function needBridgeNetfilter(): void {
  if (existsSync('/proc/sys/net/bridge')) return;
  try {
    execFileSync('modprobe', ['br_netfilter'], { stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (cause) {
    throw new Error('The kernel module br_netfilter is not loaded and cannot be loaded: run "modprobe br_netfilter"', {
      cause,
    });
  }
}
