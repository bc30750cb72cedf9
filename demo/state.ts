import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeNamespace, startTime } from '../test/lab/namespace.ts';

/** Fixed names, so that a kept demo is found again: by its user and by --remove. */
export const NAME_PREFIX = 'nodeplane-demo-';
/** As written in node-1.conflist and node-2.conflist. */
export const FOLDER = '/run/nodeplane-demo';
const OWNER_FILE = join(FOLDER, 'owner.json');

/** The process that a demo lives as long as: the demo itself, or the one that serves a kept one. */
interface Owner {
  readonly pid: number;
  readonly startTime: string;
}

/** Notes `pid` as the owner of the demo. */
export function writeOwner(pid: number): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(OWNER_FILE, JSON.stringify({ pid, startTime: startTime(pid) } satisfies Owner));
}

/** The process number of a demo that is up, if there is one. */
export function liveOwner(): number | undefined {
  if (!existsSync(OWNER_FILE)) return undefined;
  const owner = JSON.parse(readFileSync(OWNER_FILE, 'utf8')) as Owner;
  return startTime(owner.pid) === owner.startTime ? owner.pid : undefined;
}

/** Removes namespaces, the processes in them, and files of any demo. Returns the names of the namespaces. */
export function removeDemo(): string[] {
  const names = existsSync('/run/netns')
    ? readdirSync('/run/netns').filter((name) => name.startsWith(NAME_PREFIX))
    : [];
  for (const name of names) removeNamespace(name);
  rmSync(FOLDER, { recursive: true, force: true });
  return names;
}
