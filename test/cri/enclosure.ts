import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createFolder, own, startTime, type TestNamespace } from '../lab/namespace.ts';
import { endProcesses, removeCgroups } from './remains.ts';

/**
 * A place for a container runtime: the network of a lab node, and mounts of its own. /run, /var/lib and /dev/shm are
 * private there, so a runtime uses its usual paths without meeting one of the machine, and so is the kernel's boot ID. The
 * mounts are seen by no other process and end with the last process inside.
 */
export interface Enclosure {
  /** For files that both sides see under the same path. Removed at the end. */
  readonly folder: string;
  /** Name for the cgroups of containers, below the root of each hierarchy. */
  readonly cgroup: string;
  /** The beginning of a command line that runs a program inside. Another one after a reboot. */
  readonly enter: readonly string[];
  /** Starts a program inside. Its output goes to the descriptor `output`. */
  spawn(program: string, args: readonly string[], options: InsideOptions & { readonly output: number }): ChildProcess;
  /** Runs a program inside and returns its output; throws with its error text when it fails. */
  run(program: string, args: readonly string[], options?: RunOptions): string;
  /** What a power cut and a start of the machine do: every process ends, /run is empty, the kernel has a new boot ID. */
  reboot(): Promise<void>;
  /** Ends every process inside, containers too, and removes what they leave. */
  remove(): void;
}

interface InsideOptions {
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

interface RunOptions extends InsideOptions {
  /** For standard input. @default nothing */
  readonly input?: string;
}

const RUN_TIMEOUT_MS = 60_000;
const FOLDER = /nplab-(\d+)-(\d+)-enclosure-/;

/**
 * Inside: the folder is mounted on itself, which marks every process by its mountinfo, whatever becomes of its parents.
 * The anchor keeps the mounts when a runtime is killed and comes back.
 */
const ANCHOR_SCRIPT = `set -e
mount --bind "$1" "$1"
mount --bind "$1/run" /run
mount --bind "$1/var-lib" /var/lib
mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id
mount -t tmpfs tmpfs /dev/shm
mkdir /run/netns /run/lock
echo ready
exec sleep infinity`;

/** Needs root. */
export async function createEnclosure(node: TestNamespace): Promise<Enclosure> {
  sweepOnce();
  const { path: folder, remove: removeFolder } = createFolder('enclosure');
  const cgroup = basename(folder);
  const end = () => {
    endProcesses((mounts) => mounts.includes(folder));
    removeCgroups((name) => name === cgroup);
  };
  const remove = own(() => {
    end();
    removeFolder();
  });
  mkdirSync(join(folder, 'var-lib'));
  let anchor = await boot(node, folder);
  const enter = () => ['nsenter', '--target', String(anchor), '--mount', '--net', '--'];
  const inside = (program: string, args: readonly string[]): [string, string[]] => {
    const [command, ...before] = enter();
    return [command!, [...before, program, ...args]];
  };
  return {
    folder,
    cgroup,
    get enter() {
      return enter();
    },
    spawn: (program, args, { env, output }) =>
      spawn(...inside(program, args), { stdio: ['ignore', output, output], env: { ...process.env, ...env } }),
    run: (program, args, { env, input = '' } = {}) =>
      execFileSync(...inside(program, args), {
        encoding: 'utf8',
        input,
        stdio: ['pipe', 'pipe', 'pipe'],
        env: { ...process.env, ...env },
        timeout: RUN_TIMEOUT_MS,
      }),
    async reboot() {
      end();
      rmSync(join(folder, 'run'), { recursive: true });
      anchor = await boot(node, folder);
    },
    remove,
  };
}

/** Makes the mounts and resolves to the process that keeps them. */
async function boot(node: TestNamespace, folder: string): Promise<number> {
  mkdirSync(join(folder, 'run'));
  writeFileSync(join(folder, 'boot_id'), `${randomUUID()}\n`);
  const anchor = spawn(
    'nsenter',
    [`--net=${node.path}`, 'unshare', '--mount', '--propagation', 'slave', 'sh', '-c', ANCHOR_SCRIPT, 'sh', folder],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  anchor.unref();
  const failed = once(anchor, 'exit').then(() =>
    Promise.reject(new Error('Cannot make the private mounts of a runtime')),
  );
  await Promise.race([once(anchor.stdout!, 'data'), failed]);
  failed.catch(() => undefined);
  anchor.stdout!.destroy();
  return anchor.pid!;
}

let swept = false;

/** Once a process: what killed runs left. Their folders and namespaces are removed by namespace.ts. */
function sweepOnce(): void {
  if (swept) return;
  swept = true;
  const abandoned = (text: string) => {
    const [, pid, started] = FOLDER.exec(text) ?? [];
    return pid !== undefined && startTime(Number(pid)) !== started;
  };
  endProcesses(abandoned);
  removeCgroups(abandoned);
}
