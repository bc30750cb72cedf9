import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ConfList, LabNode } from '../lab/lab.ts';
import { createEnclosure, type Enclosure } from './enclosure.ts';
import { createImageArchive, IMAGE } from './image.ts';
import { installPlugins } from './plugins.ts';

/** A podman with a configuration and folders of its own, on a lab node. There is no daemon. */
export interface Podman {
  readonly enclosure: Enclosure;
  /** Starts a container of the test image in the background. */
  start(container: PodmanContainer): void;
  /** Runs `podman <args>` and returns its output; throws with its error text when it fails. */
  run(...args: string[]): string;
}

export interface PodmanContainer {
  readonly name: string;
  /** As for `--publish`: `8080:80/udp`. @default none */
  readonly publish?: readonly string[];
  /** @default what the image does: sleep */
  readonly command?: readonly string[];
}

const PROGRAM = fileURLToPath(new URL('../../.cache/podman/usr/bin/podman', import.meta.url));

/** Why podman cannot be tested here; undefined when it can. */
export function podmanObjection(): string | undefined {
  const version = execFileSync(PROGRAM, ['--version'], { encoding: 'utf8' }).trim();
  const major = Number(/ version (\d+)\./.exec(version)?.[1]);
  return major >= 5 ? `"${version}" runs no CNI plugins any more, 4.3 of Debian 12 does` : undefined;
}

/** Sets it up with one network and gives it the image. */
export async function createPodman(node: LabNode, conflist: ConfList): Promise<Podman> {
  if (!existsSync(PROGRAM)) throw new Error(`Cannot find "${PROGRAM}": run scripts/setup`);
  const enclosure = await createEnclosure(node.namespace);
  const { folder } = enclosure;
  const networkConfigDir = join(folder, 'net.d');
  mkdirSync(networkConfigDir);
  writeFileSync(join(networkConfigDir, '10-nodeplane.conflist'), JSON.stringify(conflist));
  const binDir = join(folder, 'cni');
  mkdirSync(binDir);
  installPlugins(binDir);
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const env = {
    CONTAINERS_CONF: file(
      'containers.conf',
      containersConf({ folder, networkConfigDir, binDir, network: conflist.name }),
    ),
    CONTAINERS_STORAGE_CONF: file('storage.conf', storageConf(folder)),
    CONTAINERS_REGISTRIES_CONF: file('registries.conf', ''),
  };
  const policy = file('policy.json', '{ "default": [{ "type": "insecureAcceptAnything" }] }');
  const run = (...args: string[]) => enclosure.run(PROGRAM, args, { env });
  run('load', '--signature-policy', policy, '--input', createImageArchive(folder));
  return {
    enclosure,
    run,
    start({ name, publish = [], command = [] }) {
      const ports = publish.flatMap((port) => ['--publish', port]);
      run('run', '--detach', '--name', name, '--cgroup-parent', `/${enclosure.cgroup}`, ...ports, IMAGE, ...command);
    },
  };
}

interface Settings {
  readonly folder: string;
  readonly networkConfigDir: string;
  readonly binDir: string;
  readonly network: string;
}

/** Debian's podman 4.3 has two network backends; the one that uses CNI plugins is the older. */
function containersConf({ folder, networkConfigDir, binDir, network }: Settings): string {
  return `[containers]
# Root inside another container may not ask for more than it has.
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
apparmor_profile = "unconfined"
[network]
network_backend = "cni"
cni_plugin_dirs = ["${binDir}"]
network_config_dir = "${networkConfigDir}"
default_network = "${network}"
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
