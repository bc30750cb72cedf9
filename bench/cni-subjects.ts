import { join } from 'node:path';
import { standardConflist } from '../src/agent/index.ts';
import type { TestNamespace } from '../test/lab/namespace.ts';
import { builtProgram } from '../test/lab/programs.ts';
import type { PluginChain } from './plugin-runs.ts';

/** What a network asks for beyond interface and address. */
export interface Wanted {
  readonly ipMasq: boolean;
  readonly hostPort: boolean;
  /**
   * The list that the agent installs, and the reference plugins that do the same behind bridge: portmap, bandwidth and
   * firewall, each called for every pod. @default false
   */
  readonly standard?: boolean;
}

/** A way to attach pods: what to call as libcni calls it. */
export interface Subject {
  readonly name: string;
  /** The node it is called in. */
  readonly node: TestNamespace;
  add(pod: TestNamespace, number: number): PluginChain;
  /** @param result what ADD printed */
  del(pod: TestNamespace, number: number, result: string): PluginChain;
}

/** Where the programs of a subject are, and what their networks are called. */
export interface SubjectPlace {
  readonly node: TestNamespace;
  /** Third number of the pods' /16: networks must not share addresses. */
  readonly number: number;
  /** Directory of reservations. */
  readonly dataDir: string;
  readonly wanted: Wanted;
}

type Json = Readonly<Record<string, unknown>>;
interface Plugin {
  readonly program: string;
  readonly config: (hostPort: number) => Json;
}

const REFERENCE = '/usr/lib/cni';

/** Debian's bridge and host-local, with portmap behind them for host ports. */
export function referencePlugins(place: SubjectPlace): Subject {
  const { ipMasq, hostPort: wantsPort, standard = false } = place.wanted;
  const bridge = { ...network(place), type: 'bridge', isDefaultGateway: true, ipMasq, hairpinMode: standard };
  const chained = (type: string, wishes: (hostPort: number) => Json = () => ({})): Plugin => ({
    program: join(REFERENCE, type),
    config: (hostPort) => ({ ...identity(place), type, ...wishes(hostPort) }),
  });
  return subject('bridge + host-local', place, [
    { program: join(REFERENCE, 'bridge'), config: () => bridge },
    ...(wantsPort ? [chained('portmap', portMapping)] : standard ? [chained('portmap')] : []),
    ...(standard ? [chained('bandwidth'), chained('firewall')] : []),
  ]);
}

/** The static plugin of the host, which asks the agent. */
export function hostPlugin(place: SubjectPlace, program: string, socket: string): Subject {
  return subject('shim and agent', place, [{ program, config: ownConfig(place) }], {
    NODEPLANE_CNI_SOCKET: socket,
  });
}

/** The plugin alone, started as a runtime starts it: the Node.js in PATH, which `npm run bench` has built it with, runs it. */
export function standAlonePlugin(place: SubjectPlace): Subject {
  return subject('stand-alone', place, [{ program: builtProgram('nodeplane-cni'), config: ownConfig(place) }]);
}

function ownConfig(place: SubjectPlace): Plugin['config'] {
  const { ipMasq, hostPort, standard = false } = place.wanted;
  // Of the list that the agent installs, all but the addresses: those are the same for all subjects.
  const installed = standard ? (JSON.parse(standardConflist().statusConfig) as Json) : {};
  const config = { ...installed, ...network(place), type: 'nodeplane-cni', isDefaultGateway: true, ipMasq };
  return (port) => (hostPort ? { ...config, ...portMapping(port) } : config);
}

function identity({ number }: SubjectPlace): Json {
  return { cniVersion: '1.0.0', name: `bench${number}` };
}

function network(place: SubjectPlace): Json {
  const { number, dataDir } = place;
  const ipam = { type: 'host-local', ranges: [[{ subnet: `10.${number}.0.0/16` }]], dataDir };
  return { ...identity(place), bridge: `br${number}`, ipam };
}

function portMapping(hostPort: number): Json {
  return { runtimeConfig: { portMappings: [{ hostPort, containerPort: 80, protocol: 'tcp' }] } };
}

function subject(
  name: string,
  { node }: SubjectPlace,
  plugins: readonly Plugin[],
  env: Readonly<Record<string, string>> = {},
): Subject {
  const call = (verb: 'ADD' | 'DEL', { program, config }: Plugin, pod: TestNamespace, hostPort: number) => ({
    program,
    env: {
      PATH: process.env.PATH,
      XTABLES_LOCKFILE: process.env.XTABLES_LOCKFILE,
      CNI_COMMAND: verb,
      CNI_CONTAINERID: pod.name,
      CNI_NETNS: pod.path,
      CNI_IFNAME: 'eth0',
      CNI_PATH: REFERENCE,
      ...env,
    },
    config: config(hostPort),
  });
  return {
    name,
    node,
    add: (pod, number) => plugins.map((plugin) => call('ADD', plugin, pod, 20_000 + number)),
    del(pod, number, result) {
      const calls = plugins.toReversed().map((plugin) => call('DEL', plugin, pod, 20_000 + number));
      return calls.map(({ config, ...rest }) => ({ ...rest, config: { ...config, prevResult: JSON.parse(result) } }));
    },
  };
}
