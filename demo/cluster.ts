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
/** Where the web pods listen, and the addresses the plugin gives them: the range starts there. */
export const WEB_PORT = 8080;
export const WEB_PODS = [
  { name: 'web-1', ip: '10.244.1.11' },
  { name: 'web-2', ip: '10.244.1.12' },
  { name: 'web-3', ip: '10.244.1.13' },
] as const;

/** Everything the demo shows something with. */
export interface Cluster {
  readonly node: LabNode;
  readonly webPods: readonly Pod[];
  readonly client: Pod;
  /** A machine on the node's network that is not part of the cluster. */
  readonly outside: Host;
  /** The agent that runs now. */
  agent: Agent;
  /** Stops it and starts another with these flags. */
  restartAgent(flags: readonly string[]): Promise<void>;
  /** The copy of demo/manifests/ that the agent follows. */
  readonly manifests: string;
}

/** Makes node, pods and clients of namespaces, and starts the agent. */
export async function buildCluster(screen: Screen, options: { readonly keep: boolean }): Promise<Cluster> {
  const source = join(dirname(fileURLToPath(import.meta.url)), '../demo');
  const manifests = join(FOLDER, 'manifests');
  mkdirSync(FOLDER, { recursive: true });
  cpSync(join(source, 'manifests'), manifests, { recursive: true });
  cpSync(join(source, '10-nodeplane.conflist'), join(FOLDER, '10-nodeplane.conflist'));
  const conflist = JSON.parse(readFileSync(join(FOLDER, '10-nodeplane.conflist'), 'utf8')) as ConfList;

  screen.doing('Making the node and a machine outside');
  needBridgeNetfilter();
  const lab = createLab({ namePrefix: NAME_PREFIX, folder: FOLDER });
  const node = lab.addNode({ name: 'node-1', podCidrs: ['10.244.1.0/24'], conflist });
  const outside = lab.addClient('outside');
  screen.done(`node-1 (${node.ip()}) and a machine outside (${outside.ip()}) on one wire`);

  screen.doing('Attaching pods');
  const webPods: Pod[] = [];
  for (const { name, ip } of WEB_PODS) {
    const pod = node.addPod(name);
    claim(pod.ip() === ip, `The plugin gives ${name} the address ${ip} of 10-nodeplane.conflist`, pod.ip());
    await pod.serve({ port: WEB_PORT });
    webPods.push(pod);
  }
  const client = node.addPod('client');
  screen.done('web-1, web-2, web-3 and client attached by nodeplane-cni as 10-nodeplane.conflist says');

  screen.doing('Starting the agent');
  const start = (flags: readonly string[]) => node.startAgent({ manifests, flags, detached: options.keep });
  const cluster: Cluster = {
    node,
    webPods,
    client,
    outside,
    manifests,
    agent: await start([]),
    async restartAgent(flags) {
      await cluster.agent.stop();
      cluster.agent = await start(flags);
    },
  };
  screen.done('nodeplane agent follows the manifests, first sync done');
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
