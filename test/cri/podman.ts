import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createHost, type Host } from '../lab/host.ts';
import type { LabNode } from '../lab/lab.ts';
import { createEnclosure } from './enclosure.ts';
import { createImageArchive, IMAGE } from './image.ts';
import type { CniRuntime } from './plugins.ts';
import { namespaceOf } from './pod.ts';
import { until } from './until.ts';

/** A podman with a configuration and folders of its own, on a lab node. There is no daemon. */
export interface Podman extends CniRuntime {
  /** Starts a container of the test image in the background. */
  start(container: ContainerSettings): PodmanContainer;
  /** Gives it the images of an archive. */
  load(archive: string): void;
  /** Runs `podman <args>` and returns its output; throws with its error text when it fails. */
  run(...args: string[]): string;
}

export interface ContainerSettings {
  readonly name: string;
  /** As for `--publish`: `8080:80/udp`. @default none */
  readonly publish?: readonly string[];
  /** @default what the image does: sleep */
  readonly command?: readonly string[];
}

/** A container with a network of its own. As a host it is any process in that network. */
export interface PodmanContainer extends Host {
  /** Its network as `podman inspect` shows it. */
  readonly attached: Attached;
  /** Ends and removes it. */
  remove(): Promise<void>;
}

/** Of one network, as `podman inspect` shows it. */
export interface Attached {
  readonly IPAddress: string;
  readonly GlobalIPv6Address: string;
  readonly Gateway: string;
  readonly MacAddress: string;
}

/** What a stand-alone network and the agent's own are called. */
const NETWORK = 'nodeplane';
const PROGRAM = fileURLToPath(new URL('../../.cache/podman/usr/bin/podman', import.meta.url));

/** Why podman cannot be tested here; undefined when it can. */
export function podmanObjection(): string | undefined {
  const version = execFileSync(PROGRAM, ['--version'], { encoding: 'utf8' }).trim();
  const major = Number(/ version (\d+)\./.exec(version)?.[1]);
  return major >= 5 ? `"${version}" runs no CNI plugins any more, 4.3 of Debian 12 does` : undefined;
}

/** Sets it up without a network, and gives it the image. */
export async function createPodman(node: LabNode): Promise<Podman> {
  if (!existsSync(PROGRAM)) throw new Error(`Cannot find "${PROGRAM}": run scripts/setup`);
  const enclosure = await createEnclosure(node.namespace);
  const { folder } = enclosure;
  const [cniConfigDir, cniBinDir] = [join(folder, 'net.d'), join(folder, 'cni')];
  for (const dir of [cniConfigDir, cniBinDir]) mkdirSync(dir);
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const env = {
    CONTAINERS_CONF: file('containers.conf', containersConf({ folder, cniConfigDir, cniBinDir })),
    CONTAINERS_STORAGE_CONF: file('storage.conf', storageConf(folder)),
    CONTAINERS_REGISTRIES_CONF: file('registries.conf', ''),
  };
  const policy = file('policy.json', '{ "default": [{ "type": "insecureAcceptAnything" }] }');
  const run = (...args: string[]) => enclosure.run(PROGRAM, args, { env });
  const load = (archive: string) => void run('load', '--signature-policy', policy, '--input', archive);
  load(createImageArchive(folder));
  return {
    enclosure,
    cniBinDir,
    cniConfigDir,
    // There is no daemon to have read it.
    networkReady: () =>
      until('there is a network configuration', async () => {
        const files = readdirSync(cniConfigDir);
        if (!files.some((name) => name.endsWith('.conflist')))
          throw new Error(`"${cniConfigDir}" holds only: ${files}`);
      }),
    run,
    load,
    start({ name, publish = [], command = [] }) {
      const ports = publish.flatMap((port) => ['--publish', port]);
      run('run', '--detach', '--name', name, '--cgroup-parent', `/${enclosure.cgroup}`, ...ports, IMAGE, ...command);
      const [shown] = JSON.parse(run('inspect', name)) as [Shown];
      const attached = shown.NetworkSettings.Networks[NETWORK]!;
      const ips = [attached.IPAddress, attached.GlobalIPv6Address];
      const host = createHost({ name, namespace: namespaceOf(name, shown.State.Pid), ips });
      return {
        ...host,
        attached,
        async remove() {
          await host.remove();
          run('rm', '--force', '--time', '0', name);
        },
      };
    },
  };
}

/** The part of what `podman inspect` prints. */
interface Shown {
  readonly State: { readonly Pid: number };
  readonly NetworkSettings: { readonly Networks: Readonly<Record<string, Attached>> };
}

interface Settings {
  readonly folder: string;
  readonly cniConfigDir: string;
  readonly cniBinDir: string;
}

/** Debian's podman 4.3 has two network backends; the one that uses CNI plugins is the older. */
function containersConf({ folder, cniConfigDir, cniBinDir }: Settings): string {
  return `[containers]
# Root inside another container may not ask for more than it has.
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
apparmor_profile = "unconfined"
[network]
network_backend = "cni"
cni_plugin_dirs = ["${cniBinDir}"]
network_config_dir = "${cniConfigDir}"
default_network = "${NETWORK}"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
static_dir = "${folder}/libpod"
tmp_dir = "${folder}/libpod-tmp"
volume_path = "${folder}/volumes"
`;
}

function storageConf(folder: string): string {
  return `[storage]
driver = "vfs"
graphroot = "${folder}/storage"
runroot = "${folder}/storage-run"
`;
}
