import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestNamespace } from '../test/lab/namespace.ts';
import { builtProgram } from '../test/lab/programs.ts';

/** What a network asks for beyond interface and address. */
export interface Wanted {
  readonly ipMasq: boolean;
  readonly hostPort: boolean;
}

/** A way to attach pods: programs called as libcni calls them, in the network namespace of this thread. */
export interface Subject {
  readonly name: string;
  /** ADD; rejects with the plugin's words. */
  add(pod: TestNamespace, number: number): Promise<void>;
  del(pod: TestNamespace, number: number): Promise<void>;
}

/** Where the programs of a subject are, and what their networks are called. */
export interface SubjectPlace {
  /** Third number of the pods' /16: networks must not share addresses. */
  readonly number: number;
  /** Directory of reservations. */
  readonly dataDir: string;
  readonly wanted: Wanted;
}

type Json = Readonly<Record<string, unknown>>;
interface Plugin {
  readonly command: readonly [program: string, ...args: string[]];
  readonly config: (hostPort: number) => Json;
}

const REFERENCE = '/usr/lib/cni';

/** Debian's bridge and host-local, with portmap behind them for host ports. */
export function referencePlugins(place: SubjectPlace): Subject {
  const bridge = { ...network(place), type: 'bridge', isDefaultGateway: true, ipMasq: place.wanted.ipMasq };
  const portmap = { ...identity(place), type: 'portmap' };
  return subject('bridge + host-local', [
    { command: [join(REFERENCE, 'bridge')], config: () => bridge },
    ...(place.wanted.hostPort
      ? [
          {
            command: [join(REFERENCE, 'portmap')] as const,
            config: (hostPort: number) => ({ ...portmap, ...portMapping(hostPort) }),
          },
        ]
      : []),
  ]);
}

/** The static plugin of the host, which asks the agent. */
export function hostPlugin(place: SubjectPlace, program: string, socket: string): Subject {
  return subject('shim and agent', [{ command: [program], config: ownConfig(place) }], {
    NODEPLANE_CNI_SOCKET: socket,
  });
}

/** The plugin alone, on the Node.js that NODEPLANE_BENCH_NODE names. */
export function standAlonePlugin(place: SubjectPlace): Subject {
  const node = process.env.NODEPLANE_BENCH_NODE ?? process.execPath;
  if (!existsSync(node)) throw new Error(`Cannot run "${node}" (NODEPLANE_BENCH_NODE): it is not there`);
  return subject('stand-alone', [{ command: [node, builtProgram('nodeplane-cni')], config: ownConfig(place) }]);
}

function ownConfig(place: SubjectPlace): Plugin['config'] {
  const { ipMasq, hostPort } = place.wanted;
  const config = { ...network(place), type: 'nodeplane-cni', isDefaultGateway: true, ipMasq };
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

function subject(name: string, plugins: readonly Plugin[], env: Readonly<Record<string, string>> = {}): Subject {
  const results = new Map<string, Json | undefined>();
  const call = (
    verb: 'ADD' | 'DEL',
    plugin: Plugin,
    pod: TestNamespace,
    port: number,
    prevResult: Json | undefined,
  ) => {
    const config = { ...plugin.config(port), ...(prevResult && { prevResult }) };
    const variables = {
      ...{ PATH: process.env.PATH, XTABLES_LOCKFILE: process.env.XTABLES_LOCKFILE },
      ...{ CNI_COMMAND: verb, CNI_CONTAINERID: pod.name, CNI_NETNS: pod.path, CNI_IFNAME: 'eth0', CNI_PATH: REFERENCE },
      ...env,
    };
    return run(plugin.command, variables, JSON.stringify(config));
  };
  return {
    name,
    async add(pod, number) {
      let result: Json | undefined;
      for (const plugin of plugins)
        result = JSON.parse(await call('ADD', plugin, pod, 20_000 + number, result)) as Json;
      results.set(pod.name, result);
    },
    async del(pod, number) {
      for (const plugin of [...plugins].reverse()) {
        await call('DEL', plugin, pod, 20_000 + number, results.get(pod.name));
      }
    },
  };
}

function run(
  [program, ...args]: Plugin['command'],
  env: Readonly<Record<string, string | undefined>>,
  input: string,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: env as NodeJS.ProcessEnv, stdio: 'pipe' });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    child.on('error', reject);
    child.on('close', (status) => {
      if (status === 0) resolve(output);
      else reject(new Error(`${env.CNI_COMMAND} by ${program} failed: ${output}`));
    });
    child.stdin.end(input);
  });
}
