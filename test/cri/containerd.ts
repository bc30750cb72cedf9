import type { ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LabNode } from '../lab/lab.ts';
import { own } from '../lab/namespace.ts';
import { repositoryFile } from '../lab/programs.ts';
import { type CriClient, connectCri, type RuntimeCondition } from './cri-client.ts';
import { createEnclosure, type Enclosure } from './enclosure.ts';
import { createImageArchive, IMAGE } from './image.ts';
import type { CniRuntime } from './plugins.ts';
import { until } from './until.ts';

/** A containerd with a configuration and folders of its own, on a lab node. */
export interface Containerd extends CniRuntime {
  readonly cri: CriClient;
  /** RuntimeReady and NetworkReady. */
  condition(type: 'RuntimeReady' | 'NetworkReady'): Promise<RuntimeCondition>;
  /** What it measures about itself, in the Prometheus text format. */
  metrics(): string;
  /** Gives it the images of an archive. */
  importImage(archive: string): void;
  /** SIGKILL; pods and their shims live on. */
  kill(): Promise<void>;
  /** Starts it again, after a kill or a reboot of the enclosure, and waits until it answers. */
  start(): Promise<void>;
}

/** In the namespace of its node, which is its alone. */
const METRICS = '127.0.0.1:1338';
const BUSYBOX = repositoryFile('.cache/busybox-static/bin/busybox');
const UNPACKED = repositoryFile('.cache/containerd');

/** Starts containerd on a node and gives it the image. @throws with the end of its log when it does not come up */
export async function startContainerd(node: LabNode): Promise<Containerd> {
  const program = join(UNPACKED, 'usr/bin/containerd');
  if (!existsSync(program)) throw new Error(`Cannot find "${program}": run scripts/setup`);
  const path = [join(UNPACKED, 'usr/bin'), process.env.PATH, '/usr/sbin:/sbin'].join(':');
  const env = { PATH: path };
  const enclosure = await createEnclosure(node.namespace);
  const { folder } = enclosure;
  const [socket, configFile, logFile] = [join(folder, 'cri.sock'), join(folder, 'config.toml'), join(folder, 'log')];
  const [cniConfigDir, cniBinDir] = [join(folder, 'net.d'), join(folder, 'cni')];
  for (const dir of [cniConfigDir, cniBinDir]) mkdirSync(dir);
  writeFileSync(
    configFile,
    configuration({ folder, socket, cniConfigDir, cniBinDir, snapshotter: snapshotterFor(enclosure) }),
  );
  const cri = connectCri(socket);
  own(() => cri.close());
  let daemon: ChildProcess | undefined;

  const start = async () => {
    const log = openSync(logFile, 'a');
    daemon = enclosure.spawn(program, ['--config', configFile], { output: log, env });
    closeSync(log);
    daemon.unref();
    await until('containerd answers', async () => {
      if (daemon!.exitCode !== null) throw new Error(`It ended with ${daemon!.exitCode}: ${lastLines(logFile)}`);
      await cri.call('Version', {}, { timeoutMs: 1000 });
    });
  };
  const condition: Containerd['condition'] = async (type) => {
    const { status } = await cri.call('Status', {});
    return status.conditions.find((condition) => condition.type === type)!;
  };
  const containerd: Containerd = {
    enclosure,
    cri,
    condition,
    metrics: () => enclosure.run(BUSYBOX, ['wget', '-q', '-O', '-', `http://${METRICS}/v1/metrics`]),
    cniBinDir,
    cniConfigDir,
    importImage(archive) {
      enclosure.run('ctr', ['--address', socket, '--namespace', 'k8s.io', 'images', 'import', archive], { env });
    },
    networkReady: () =>
      until('the network is ready', async () => {
        const { status, message } = await condition('NetworkReady');
        if (!status) throw new Error(message);
      }),
    async kill() {
      const ended = new Promise((resolve) => daemon!.once('exit', resolve));
      daemon!.kill('SIGKILL');
      await ended;
    },
    start,
  };
  await start();
  containerd.importImage(createImageArchive(folder));
  return containerd;
}

function lastLines(file: string): string {
  return readFileSync(file, 'utf8').split('\n').slice(-20).join('\n');
}

interface Configuration {
  readonly folder: string;
  readonly socket: string;
  readonly cniConfigDir: string;
  readonly cniBinDir: string;
  readonly snapshotter: 'overlayfs' | 'native';
}

function configuration({ folder, socket, cniConfigDir, cniBinDir, snapshotter }: Configuration): string {
  return `version = 2
root = "${folder}/root"
state = "${folder}/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = "${socket}"
[metrics]
address = "${METRICS}"
[plugins."io.containerd.internal.v1.opt"]
path = "${folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "${IMAGE}"
# Root inside another container may not make a process safer from the kernel's out-of-memory killer.
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "${snapshotter}"
[plugins."io.containerd.grpc.v1.cri".cni]
conf_dir = "${cniConfigDir}"
bin_dir = "${cniBinDir}"
`;
}

/** overlayfs copies nothing, but does not work on a folder that is itself on an overlay. */
function snapshotterFor(enclosure: Enclosure): Configuration['snapshotter'] {
  const parts = ['lower', 'upper', 'work', 'merged'].map((name) => join(enclosure.folder, 'overlay', name));
  for (const part of parts) mkdirSync(part, { recursive: true });
  const [lower, upper, work, merged] = parts;
  try {
    const layers = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
    enclosure.run('mount', ['-t', 'overlay', 'overlay', '-o', layers, merged!]);
    enclosure.run('umount', [merged!]);
    return 'overlayfs';
  } catch {
    return 'native';
  }
}
