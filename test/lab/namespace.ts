import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** All names of the lab begin with this, followed by the process that made them: `nplab-<pid>-<start time>-…`. */
const PREFIX = 'nplab-';
const NETNS_FOLDER = '/run/netns';

/** A network namespace made for a test. */
export interface TestNamespace {
  /** Unique on the machine; made of `label` and the process. */
  readonly name: string;
  readonly path: string;
  /** Runs a program inside and returns its output; throws with its error text when it fails. */
  run(program: string, ...args: string[]): string;
  /** Ends the processes inside, then removes the namespace. Safe to call twice. */
  remove(): void;
}

let counter = 0;
const owned = new Set<() => void>();

/** Makes an empty namespace (loopback down). It is removed at the latest when the process ends. */
export function createNamespace(label: string): TestNamespace {
  sweepOnce();
  const name = `${PREFIX}${process.pid}-${startTime(process.pid)}-${++counter}-${label}`;
  const path = join(NETNS_FOLDER, name);
  execFileSync('ip', ['netns', 'add', name]);
  const remove = () => {
    owned.delete(remove);
    removeNamespace(name);
  };
  owned.add(remove);
  return {
    name,
    path,
    run: (program, ...args) =>
      execFileSync('ip', ['netns', 'exec', name, program, ...args], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    remove,
  };
}

/** Makes an empty folder that is removed at the latest when the process ends. */
export function createFolder(label: string): { readonly path: string; remove(): void } {
  sweepOnce();
  const path = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-${startTime(process.pid)}-${label}-`));
  const remove = () => {
    owned.delete(remove);
    rmSync(path, { recursive: true, force: true });
  };
  owned.add(remove);
  return { path, remove };
}

/** Removes everything this process made. */
export function removeAll(): void {
  for (const remove of [...owned].reverse()) {
    try {
      remove();
    } catch (error) {
      process.stderr.write(`Clean-up: ${String(error)}\n`);
    }
  }
}

let swept = false;

/** Once a process: clean up at exit and on signals, and remove what a killed test run left behind. */
function sweepOnce(): void {
  if (swept) return;
  swept = true;
  process.on('exit', removeAll);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      removeAll();
      process.kill(process.pid, signal);
    });
  }
  const abandoned = (entry: string) => {
    const [, pid, started] = /^nplab-(\d+)-(\d+)-/.exec(entry) ?? [];
    return pid !== undefined && startTime(Number(pid)) !== started;
  };
  for (const name of existsSync(NETNS_FOLDER) ? readdirSync(NETNS_FOLDER) : []) {
    if (abandoned(name)) removeNamespace(name);
  }
  for (const name of readdirSync(tmpdir())) {
    if (abandoned(name)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
}

function removeNamespace(name: string): void {
  if (!existsSync(join(NETNS_FOLDER, name))) return;
  const pids = execFileSync('ip', ['netns', 'pids', name], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean)
    .map(Number);
  for (const pid of pids) {
    // A test that entered the namespace itself is listed too; it must not end itself.
    if (pid !== process.pid) killQuietly(pid);
  }
  execFileSync('ip', ['netns', 'del', name]);
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Ended meanwhile.
  }
}

/** The kernel's start time of a process, which tells it from a later one with the same number; '' when it is gone. */
function startTime(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}
