import { copyFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent, ConfList, LabNode } from '../lab/lab.ts';
import { builtProgram } from '../lab/programs.ts';
import type { Containerd } from './containerd.ts';

/** Of Debian's containernetworking-plugins, for chains. */
const REFERENCE_PLUGINS = ['portmap', 'bandwidth'];
const REFERENCE_FOLDER = '/usr/lib/cni';
const CONFLIST = '10-nodeplane.conflist';

/** The network of a node whose runtime runs the plugin itself. Its addresses are kept where every runtime has them. */
export function standAloneNetwork({ podCidrs }: LabNode): ConfList {
  return {
    cniVersion: '1.0.0',
    name: 'nodeplane',
    plugins: [
      {
        type: 'nodeplane-cni',
        bridge: 'cni0',
        isDefaultGateway: true,
        ipam: { type: 'host-local', ranges: podCidrs.map((subnet) => [{ subnet }]) },
      },
    ],
  };
}

/** Fills a folder of plugins with the stand-alone plugin, under the name `loopback` too, and with those it is chained with. */
export function installPlugins(binDir: string): void {
  for (const name of ['nodeplane-cni', 'loopback']) symlinkSync(builtProgram('nodeplane-cni'), join(binDir, name));
  for (const name of REFERENCE_PLUGINS) copyFileSync(join(REFERENCE_FOLDER, name), join(binDir, name));
}

/** A way to give a runtime its plugin. */
export interface Served {
  /** Does after a reboot what the node's start does. */
  resume(): Promise<void>;
}

/** Both ways to run the plugin, each with its name, for `describe.each`. */
export const WAYS_TO_SERVE: [way: string, serve: (containerd: Containerd, node: LabNode) => Promise<Served>][] = [
  [
    'the plugin alone',
    async (containerd, node) => {
      await serveStandAlone(containerd, standAloneNetwork(node));
      return { resume: () => Promise.resolve() };
    },
  ],
  [
    'the agent',
    async (containerd, node) => {
      await serveByAgent(containerd, node);
      return { resume: async () => void (await startCniAgent(containerd, node)) };
    },
  ],
];

/** Installs plugins and a network as a person does, the configuration last, and waits until pods can be made. */
export async function serveStandAlone(containerd: Containerd, conflist: ConfList): Promise<void> {
  installPlugins(containerd.cniBinDir);
  // Only the rename of a file that was in the folder before wakes containerd up.
  const unfinished = join(containerd.cniConfigDir, `${CONFLIST}.new`);
  writeFileSync(unfinished, JSON.stringify(conflist));
  renameSync(unfinished, join(containerd.cniConfigDir, CONFLIST));
  await containerd.networkReady();
}

/** Runs the agent, which installs its plugin and its network for containerd, and waits until pods can be made. */
export async function serveByAgent(containerd: Containerd, node: LabNode): Promise<Agent> {
  const manifests = join(containerd.enclosure.folder, 'manifests');
  mkdirSync(manifests, { recursive: true });
  const podCidrs = node.podCidrs.map((cidr) => `'${cidr}'`).join(', ');
  const text = `apiVersion: v1\nkind: Node\nmetadata: { name: ${node.name} }\nspec: { podCIDRs: [${podCidrs}] }\n`;
  writeFileSync(join(manifests, 'node.yaml'), text);
  const agent = await startCniAgent(containerd, node);
  await containerd.networkReady();
  return agent;
}

/** Starts the agent again, with the manifests of before. */
export function startCniAgent({ enclosure, cniBinDir, cniConfigDir }: Containerd, node: LabNode): Promise<Agent> {
  const flags = ['--cni', '--cni-bin-dir', cniBinDir, '--cni-conf-dir', cniConfigDir];
  return node.startAgent({ manifests: join(enclosure.folder, 'manifests'), enter: enclosure.enter, flags });
}
