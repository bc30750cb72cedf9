import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { Host } from '../host.ts';
import { type Agent, type AgentOptions, createLab, type LabNode } from '../lab.ts';
import type { TestNamespace } from '../namespace.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { callPlugin, type PluginCall, type PluginOutcome, startPlugin } from './plugin.ts';

/** A node whose agent serves CNI, with everything that is the host's in a folder. */
export interface ServedNode {
  readonly node: LabNode;
  readonly folder: string;
  readonly binDir: string;
  readonly confDir: string;
  readonly conflist: string;
  readonly socket: string;
  readonly spoolDir: string;
  readonly dataDir: string;
  /** The flags that name all that. */
  readonly flags: readonly string[];
  /** Adds a machine outside the cluster. */
  addClient(name: string): Host;
  /** Gives the Node object these podCIDRs. */
  setPodCidrs(cidrs: readonly string[]): void;
  /** Starts the agent; it serves when this resolves, and has installed what it could. */
  startAgent(options?: AgentOptions): Promise<Agent>;
  /** Calls the plugin of the host for a pod as a runtime does; the configuration is the installed one. */
  call(command: string, pod?: TestNamespace, changes?: Partial<PluginCall>): Promise<PluginOutcome>;
  /** The same, for killing it. */
  start(command: string, pod: TestNamespace, changes?: Partial<PluginCall>): ReturnType<typeof startPlugin>;
  /** Names of the files that reserve an address. */
  reservations(): string[];
  /** Requests that wait for an agent. */
  kept(): string[];
}

export function createServedNode(): ServedNode {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  const { folder } = lab;
  const path = (name: string) => join(folder, name);
  const [binDir, confDir, spoolDir, dataDir, manifests] = ['bin', 'net.d', 'spool', 'data', 'manifests'].map(path) as [
    string,
    string,
    string,
    string,
    string,
  ];
  const socket = join(folder, 'run', 'cni.sock');
  mkdirSync(manifests);
  const setPodCidrs = (cidrs: readonly string[]) =>
    writeFileSync(
      join(manifests, 'node.yaml'),
      `apiVersion: v1\nkind: Node\nmetadata: { name: node-1 }\nspec: { podCIDRs: [${cidrs.join(', ')}] }\n`,
    );
  setPodCidrs(node.podCidrs);
  const flags = ['--cni', '--cni-bin-dir', binDir, '--cni-conf-dir', confDir, '--cni-socket', socket];
  flags.push('--cni-spool-dir', spoolDir, '--cni-data-dir', dataDir);
  const conflist = join(confDir, '10-nodeplane.conflist');
  const request = (command: string, pod: TestNamespace | undefined, changes: Partial<PluginCall>): PluginCall => ({
    command,
    config: installedConfig(conflist),
    program: hostPlugin(binDir),
    ...(pod && { netns: pod, containerId: pod.name }),
    ...changes,
    env: { NODEPLANE_CNI_SOCKET: socket, NODEPLANE_CNI_SPOOL: spoolDir, ...changes.env },
  });
  return {
    node,
    folder,
    binDir,
    confDir,
    conflist,
    socket,
    spoolDir,
    dataDir,
    flags,
    setPodCidrs,
    addClient: (name) => lab.addClient(name),
    startAgent: async (options = {}) => {
      const agent = await node.startAgent({ manifests, ...options, flags: [...flags, ...(options.flags ?? [])] });
      if (options.until === undefined) await hasLooked(node);
      return agent;
    },
    call: (command, pod, changes = {}) => callPlugin(node.namespace, request(command, pod, changes)),
    start: (command, pod, changes = {}) => startPlugin(node.namespace, request(command, pod, changes)),
    reservations: () => list(join(dataDir, 'nodeplane')).filter((name) => /^[0-9a-f]+[.:]/.test(name)),
    kept: () => list(spoolDir).filter((name) => name !== 'set-aside'),
  };
}

const NOT_LOOKED = /kept while no agent ran|not looked at yet|does not listen yet/;

/** Waits until the agent has installed what it could: kept DELs come first, and nothing waits for them but pods. */
async function hasLooked(node: LabNode): Promise<void> {
  const ready = async () => (await node.httpGet('http://127.0.0.1:10256/readyz')).body;
  // Also called by hooks, where there is no test for expect.poll.
  await vi.waitUntil(async () => !NOT_LOOKED.test(await ready()), { timeout: patient(60_000) });
}

/** What libcni hands to the plugin: its own object with name and version of the list. */
export function installedConfig(conflist: string): object {
  if (!existsSync(conflist))
    return { name: 'nodeplane', cniVersion: '1.1.0', type: 'nodeplane-cni', ipam: { type: 'nodeplane' } };
  const { name, cniVersion, cniVersions, plugins } = JSON.parse(readFileSync(conflist, 'utf8'));
  const { capabilities: _, ...plugin } = plugins[0];
  return { ...plugin, name, cniVersion: cniVersions?.at(-1) ?? cniVersion };
}

/** The installed plugin; before the agent has installed it, the built one. */
function hostPlugin(binDir: string): string {
  const installed = join(binDir, 'nodeplane-cni');
  return existsSync(installed) ? installed : builtProgram('nodeplane-cni-shim');
}

function list(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).sort() : [];
}
