import { asksForFirewall, isNetworkName, POD_ANNOTATIONS } from '../../../cni/index.ts';
import { type Cidr, formatCidr, NodeplaneError, parseJson } from '../../../core/index.ts';

/** The plugin's name: of its file in the runtime's plugin directory, and in the `type` of configurations. */
export const PLUGIN_NAME = 'nodeplane-cni';
/** Sorts before what others install, because runtimes take the first file. */
export const CONFLIST_FILE = '10-nodeplane.conflist';

/** A network configuration list to install. */
export interface Conflist {
  /** The network's name. */
  readonly network: string;
  readonly text: string;
  /** What the plugin would be given on standard input for STATUS. */
  readonly statusConfig: string;
  /** Whether it says itself which MTU pods have. */
  readonly hasMtu: boolean;
  /** Whether its pods are let through a chain FORWARD that drops. */
  readonly letsPodsThrough: boolean;
}

/**
 * The list for a node whose user gave none. It holds nothing of the node, so that it stays as it is when the node's pod
 * CIDRs change: the agent adds what it knows. `cniVersion` is for runtimes that do not know `cniVersions` (before CNI 1.1).
 */
const STANDARD = {
  cniVersion: '0.4.0',
  cniVersions: ['0.4.0', '1.0.0', '1.1.0'],
  name: 'nodeplane',
  plugins: [
    {
      type: PLUGIN_NAME,
      ipam: { type: 'nodeplane' },
      ipMasq: true,
      firewall: true,
      capabilities: { portMappings: true, bandwidth: true, dns: true, ips: true, mac: true, ipRanges: true },
    },
  ],
};

/** What a list has to have, or not, by the agent's other settings. */
export interface ConflistNeeds {
  /** The annotations of pods, because they decide what a pod gets. @default false */
  readonly podAnnotations?: boolean;
  /** Whether each pod is masqueraded for itself; not where the agent does it for the node. @default true */
  readonly ipMasq?: boolean;
  /** To whom each pod shows its own address nevertheless. @default nobody beyond its subnet */
  readonly nonMasqueradeCidrs?: readonly Cidr[];
}

/** The list that is installed where the operator gives none, with what the node needs of it. */
export function standardConflist(needs: ConflistNeeds = {}): Conflist {
  const [plugin] = STANDARD.plugins;
  const annotations = needs.podAnnotations && { [POD_ANNOTATIONS]: true };
  const capabilities = { ...plugin!.capabilities, ...annotations };
  const { ipMasq = true, nonMasqueradeCidrs = [] } = needs;
  const except = ipMasq && nonMasqueradeCidrs.length > 0 && { nonMasqueradeCidrs: nonMasqueradeCidrs.map(formatCidr) };
  const list = { ...STANDARD, plugins: [{ ...plugin, ipMasq, ...except, capabilities }] };
  return readConflist(JSON.stringify(list, undefined, 2), 'standard list', needs);
}

/**
 * Checks a list that a user wrote, as far as it matters that the runtime can use it and calls us.
 *
 * @param path where it came from, for messages
 * @throws ERR_CONFIG
 */
export function readConflist(text: string, path: string, { podAnnotations }: ConflistNeeds = {}): Conflist {
  const wrong = (why: string) => new NodeplaneError('ERR_CONFIG', `Cannot use "${path}" as CNI configuration: ${why}`);
  let list: Partial<typeof STANDARD>;
  try {
    list = parseJson(text) as typeof list;
  } catch (cause) {
    throw wrong(`it is no JSON (${(cause as Error).message})`);
  }
  const { name, cniVersion, plugins } = list ?? {};
  if (!isNetworkName(name)) throw wrong('"name" is no name for a network');
  if (typeof cniVersion !== 'string') throw wrong('"cniVersion" is missing');
  const own = Array.isArray(plugins) ? plugins.find((plugin) => plugin?.type === PLUGIN_NAME) : undefined;
  if (!own) throw wrong(`none of its plugins has the type "${PLUGIN_NAME}"`);
  if (podAnnotations && (own.capabilities as Readonly<Record<string, unknown>>)?.[POD_ANNOTATIONS] !== true) {
    throw wrong(`--cni-macvlan-namespaces needs "${POD_ANNOTATIONS}": true in the "capabilities" of "${PLUGIN_NAME}"`);
  }
  // The runtime only asks plugins of 1.1 and newer lists for their status; we want to know it in any case.
  return {
    network: name,
    text: `${text.trim()}\n`,
    statusConfig: JSON.stringify({ ...own, name, cniVersion: '1.1.0' }),
    hasMtu: 'mtu' in own,
    letsPodsThrough: asksForFirewall(own),
  };
}
