import { existsSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

// What container runtimes leave on a machine when they are killed: processes and cgroups.

const CGROUP_ROOT = '/sys/fs/cgroup';
/** Processes that fork while they are being ended are found in the next round. */
const MAX_ROUNDS = 100;
const ROUND_MS = 20;

/**
 * Processes chosen by their mounts (the text of their mountinfo). Unlike a command line or a parent these tell for
 * everything a runtime started, shims and containers included: it was born among its mounts.
 */
export function processesByMounts(chosen: (mountinfo: string) => boolean): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 1 && pid !== process.pid && chosen(mountsOf(pid)));
}

/** Kills them until there are none. */
export function endProcesses(chosen: (mountinfo: string) => boolean): void {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const found = processesByMounts(chosen);
    if (found.length === 0) return;
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Ended meanwhile.
      }
    }
    waitRound();
  }
  throw new Error(`Cannot end processes ${processesByMounts(chosen).join(', ')} of a container runtime`);
}

/** Paths of cgroups just below a hierarchy's root: version 2 has one hierarchy, version 1 one in each controller's folder. */
export function cgroups(chosen: (name: string) => boolean): string[] {
  const hierarchies = [CGROUP_ROOT, ...subfolders(CGROUP_ROOT).map((name) => join(CGROUP_ROOT, name))];
  return hierarchies.flatMap((hierarchy) =>
    subfolders(hierarchy)
      .filter(chosen)
      .map((name) => join(hierarchy, name)),
  );
}

/** Removes them with all below, the innermost first: a cgroup's files cannot be unlinked. Their processes must be ending. */
export function removeCgroups(chosen: (name: string) => boolean): void {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const found = cgroups(chosen);
    if (found.filter((path) => !tryRemove(path)).length === 0) return;
    waitRound();
  }
  throw new Error(`Cannot remove the cgroups ${cgroups(chosen).join(', ')}`);
}

/** False while a process is inside: one that was killed stays for a moment. */
function tryRemove(path: string): boolean {
  try {
    if (!subfolders(path).every((name) => tryRemove(join(path, name)))) return false;
    rmdirSync(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Two runs may sweep the same leftovers at once.
    if (code === 'ENOENT') return true;
    if (code === 'EBUSY') return false;
    throw error;
  }
}

function waitRound(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ROUND_MS);
}

function subfolders(path: string): string[] {
  if (!existsSync(path)) return [];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/** '' for a process that is gone or a zombie. */
function mountsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, 'utf8');
  } catch {
    return '';
  }
}
