import { randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { runForked } from './fork-server.ts';
import type { TestNamespace } from './namespace.ts';
import { builtProgram } from './programs.ts';

/** A CNI configuration list: the content of a `.conflist` file. */
export interface ConfList {
  readonly cniVersion: string;
  readonly name: string;
  readonly plugins: readonly { readonly type: string; readonly [key: string]: unknown }[];
}

/** The part of a CNI result that the lab reads. */
export interface CniResult {
  readonly cniVersion: string;
  readonly interfaces?: readonly { readonly name: string; readonly mac?: string; readonly sandbox?: string }[];
  readonly ips?: readonly { readonly address: string; readonly gateway?: string; readonly interface?: number }[];
  readonly routes?: readonly { readonly dst: string; readonly gw?: string }[];
}

/** One container interface, attached as a container runtime does it. */
export interface Attachment {
  readonly containerId: string;
  readonly result: CniResult;
  /** The pod's addresses without prefix lengths, IPv4 first. */
  readonly ips: readonly string[];
  /** Sends DEL. */
  detach(): void;
}

/**
 * Attaches a pod's namespace to a node by running the list's plugins inside the node's namespace, as libcni does: each
 * gets its own object with the list's name and cniVersion added, and the result of the one before as prevResult; DEL
 * goes through them backwards with the final result.
 *
 * @throws with the plugin's error JSON and stderr when one fails; the ones before it are then undone
 */
export function attach(node: TestNamespace, pod: TestNamespace, list: ConfList): Attachment {
  const containerId = randomBytes(16).toString('hex');
  const run = (command: 'ADD' | 'DEL', plugin: ConfList['plugins'][number], prevResult: CniResult | undefined) => {
    const config = { ...plugin, name: list.name, cniVersion: list.cniVersion, ...(prevResult && { prevResult }) };
    const env = {
      CNI_COMMAND: command,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: pod.path,
      CNI_IFNAME: 'eth0',
      CNI_PATH: '/opt/cni/bin',
    };
    return runPlugin(node, plugin.type, env, JSON.stringify(config));
  };
  let result: CniResult | undefined;
  const detach = () => {
    for (const plugin of [...list.plugins].reverse()) run('DEL', plugin, result);
  };
  try {
    for (const plugin of list.plugins) result = JSON.parse(run('ADD', plugin, result)) as CniResult;
  } catch (error) {
    try {
      detach();
    } catch {
      // Why ADD failed matters; DEL after it often fails for the same reason.
    }
    throw error;
  }
  if (!result) throw new Error(`Network "${list.name}" lists no plugins`);
  const ips = (result.ips ?? []).map(({ address }) => address.replace(/\/.*/, ''));
  return {
    containerId,
    result,
    ips: ips.sort((a, b) => Number(isIPv6(a)) - Number(isIPv6(b))),
    detach,
  };
}

function runPlugin(node: TestNamespace, type: string, env: Record<string, string>, config: string): string {
  const program = builtProgram(type);
  try {
    const variables = Object.entries({ PATH: process.env.PATH, ...env }).map(([name, value]) => `${name}=${value}`);
    return runForked('env', ['-i', ...variables, program], { netns: node.path, input: config });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    const said = [stdout, stderr].filter(Boolean).join('\n').trim();
    throw new Error(`CNI ${env.CNI_COMMAND} by ${type} failed: ${said || String(error)}`);
  }
}
