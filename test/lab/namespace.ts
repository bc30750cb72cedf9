import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runForked } from './fork-server.ts';

/** Names made for one run begin with this, followed by the process that made them: `nplab-<pid>-<start time>-…`. */
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

/** How a namespace is named. */
export interface NamespaceOptions {
  /**
   * Begins the name instead of the run's own prefix; the name is then the same each time, and no later run sweeps it
   * away. For what may outlive the process (`release`).
   */
  readonly fixedPrefix?: string;
}

/** Makes an empty namespace (loopback down). It is removed at the latest when the process ends. */
export function createNamespace(label: string, options: NamespaceOptions = {}): TestNamespace {
  sweepOnce();
  const unique = `${PREFIX}${process.pid}-${startTime(process.pid)}-${++counter}-`;
  const name = `${options.fixedPrefix ?? unique}${label}`;
  runForked('ip', ['netns', 'add', name]);
  const remove = own(() => removeNamespace(name));
  return {
    name,
    path: join(NETNS_FOLDER, name),
    run: (program, ...args) => runIn(name, program, args),
    remove,
  };
}

/** Its output. Throws with its error text when it fails. */
function runIn(name: string, program: string, args: readonly string[]): string {
  // `ip netns exec` brings the namespace's own /sys, which takes as long as most programs.
  if (args.some((word) => /(^|\s)\/sys\//.test(word)))
    return runForked('ip', ['netns', 'exec', name, program, ...args]);
  return runForked(program, args, { netns: join(NETNS_FOLDER, name) });
}

/** Makes an empty folder that is removed at the latest when the process ends. */
export function createFolder(label: string): { readonly path: string; remove(): void } {
  sweepOnce();
  const path = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-${startTime(process.pid)}-${label}-`));
  return { path, remove: own(() => rmSync(path, { recursive: true, force: true })) };
}

/**
 * Has `remove` called by `removeAll`, at the latest when the process ends, in the reverse order of registration.
 * Returns the function to call for doing it earlier; it does nothing the second time.
 */
export function own(remove: () => void): () => void {
  sweepOnce();
  const once = () => {
    if (owned.delete(once)) remove();
  };
  owned.add(once);
  return once;
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

/** Leaves everything this process made as it is: nothing is removed any more. */
export function release(): void {
  owned.clear();
}

let swept = false;

/** Once a process: clean up at exit and on signals, and remove what a killed test run left behind. */
function sweepOnce(): void {
  if (swept) return;
  swept = true;
  process.on('exit', removeAll);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // Stays registered while it runs: an impatient second Ctrl-C must not end the process in the middle of this.
    const onSignal = () => {
      removeAll();
      process.off(signal, onSignal);
      process.kill(process.pid, signal);
    };
    process.on(signal, onSignal);
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

/** Ends the processes inside a namespace and removes it; nothing when it is gone. */
export function removeNamespace(name: string): void {
  const path = join(NETNS_FOLDER, name);
  if (!existsSync(path)) return;
  try {
    const pids = runForked('ip', ['netns', 'pids', name]).split('\n').filter(Boolean);
    for (const pid of pids.map(Number)) {
      // A test that entered the namespace itself is listed too; it must not end itself.
      if (pid !== process.pid) killQuietly(pid);
    }
    // An agent names its lock and its socket after the namespace; the next one of this number is another. Of one that
    // was killed both stay.
    for (const kind of ['lock', 'sock']) rmSync(`/run/nodeplane/agent-${statSync(path).ino}.${kind}`, { force: true });
    runForked('ip', ['netns', 'del', name]);
  } catch (error) {
    // Two runs may sweep the same leftovers at once.
    if (existsSync(path)) throw error;
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Ended meanwhile.
  }
}

/** The kernel's start time of a process, which tells it from a later one with the same number; '' when it is gone. */
export function startTime(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}
