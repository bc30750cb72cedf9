import { copyFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent, ConfList, LabNode } from '../lab/lab.ts';
import { builtProgram } from '../lab/programs.ts';
import type { Enclosure } from './enclosure.ts';

/** A container runtime as plugins see it. */
export interface CniRuntime {
  readonly enclosure: Enclosure;
  /** Where it looks for plugins, and for configurations. Both are empty at first. */
  readonly cniBinDir: string;
  readonly cniConfigDir: string;
  /** Waits until pods can be made. */
  networkReady(): Promise<void>;
}

/** Of Debian's containernetworking-plugins, for chains. */
const CHAINED_PLUGINS = ['portmap', 'bandwidth'];
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
  installReference(binDir, CHAINED_PLUGINS);
}

/** Copies plugins of Debian's containernetworking-plugins into a folder of plugins. */
export function installReference(binDir: string, names: readonly string[]): void {
  for (const name of names) copyFileSync(join(REFERENCE_FOLDER, name), join(binDir, name));
}

/** A way to give a runtime its plugin. */
export interface Served {
  /** Does after a reboot what the node's start does. */
  resume(): Promise<void>;
}

/** Both ways to run the plugin, each with its name, for `describe.each`. */
export const WAYS_TO_SERVE: [way: string, serve: (runtime: CniRuntime, node: LabNode) => Promise<Served>][] = [
  [
    'the plugin alone',
    async (runtime, node) => {
      await serveStandAlone(runtime, standAloneNetwork(node));
      return { resume: () => Promise.resolve() };
    },
  ],
  [
    'the agent',
    async (runtime, node) => {
      await serveByAgent(runtime, node);
      return { resume: async () => void (await startCniAgent(runtime, node)) };
    },
  ],
];

/** Installs plugins and a network as a person does, the configuration last, and waits until pods can be made. */
export async function serveStandAlone(runtime: CniRuntime, conflist: ConfList): Promise<void> {
  installPlugins(runtime.cniBinDir);
  placeConflist(runtime, CONFLIST, conflist);
  await runtime.networkReady();
}

/** Puts a network's configuration where the runtime looks for it, and has it look. */
export function placeConflist({ cniConfigDir }: CniRuntime, name: string, conflist: ConfList): void {
  // Only the rename of a file that was in the folder before wakes containerd up.
  const unfinished = join(cniConfigDir, `${name}.new`);
  writeFileSync(unfinished, JSON.stringify(conflist));
  renameSync(unfinished, join(cniConfigDir, name));
}

/** How the agent serves a runtime. */
export interface CniAgentOptions {
  /** The network instead of the agent's own. */
  readonly conflist?: ConfList | undefined;
  /** Further flags. @default none */
  readonly flags?: readonly string[];
  /** The folder of another build. @default this one's */
  readonly build?: string | undefined;
}

/** Runs the agent, which installs its plugin and its network for the runtime, and waits until pods can be made. */
export async function serveByAgent(runtime: CniRuntime, node: LabNode, options: CniAgentOptions = {}): Promise<Agent> {
  const manifests = manifestsOf(runtime);
  mkdirSync(manifests, { recursive: true });
  const podCidrs = node.podCidrs.map((cidr) => `'${cidr}'`).join(', ');
  const text = `apiVersion: v1\nkind: Node\nmetadata: { name: ${node.name} }\nspec: { podCIDRs: [${podCidrs}] }\n`;
  writeFileSync(join(manifests, 'node.yaml'), text);
  const agent = await startCniAgent(runtime, node, options);
  await runtime.networkReady();
  return agent;
}

/** Starts the agent again, with the manifests of before. */
export function startCniAgent(
  runtime: CniRuntime,
  node: LabNode,
  { conflist, flags: further = [], build }: CniAgentOptions = {},
): Promise<Agent> {
  const { enclosure, cniBinDir, cniConfigDir } = runtime;
  const flags = ['--cni', '--cni-bin-dir', cniBinDir, '--cni-conf-dir', cniConfigDir, ...further];
  if (conflist) {
    const file = join(enclosure.folder, CONFLIST);
    writeFileSync(file, JSON.stringify(conflist));
    flags.push('--cni-conflist', file);
  }
  const common = { manifests: manifestsOf(runtime), enter: enclosure.enter, flags };
  return node.startAgent(build === undefined ? common : { ...common, build });
}

/** The folder of manifests that the agent follows. */
export function manifestsOf({ enclosure }: CniRuntime): string {
  return join(enclosure.folder, 'manifests');
}
