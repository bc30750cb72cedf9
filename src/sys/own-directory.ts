import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { NodeplaneError } from '../core/index.ts';

const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/**
 * Makes a directory, with those around it that are missing, for this user alone (mode 0700). One that is there stays as it
 * is, whatever its mode: others may have things in it. It is refused where others could replace what we put there.
 *
 * @param purpose what it is for, in messages: `the CNI socket`
 * @throws ERR_UNSAFE_PATH as `checkOwnDirectory`; errors of node:fs
 */
export function makeOwnDirectory(path: string, purpose: string): void {
  const isThere = existsSync(path);
  checkOwnDirectory(path, purpose);
  if (isThere) return;
  mkdirSync(path, { recursive: true, mode: 0o700 });
  // Somebody may have been faster in a directory like /tmp.
  checkOwnDirectory(path, purpose);
}

/**
 * Checks that a directory is root's, or this user's, and not writable by others, and likewise those it lies in: in one of
 * those, others could put another directory in its place. Where it lies in may be writable by all if it is sticky, like
 * /tmp. Of what is missing nothing is said.
 *
 * @throws ERR_UNSAFE_PATH naming the directory, its owner and mode, and what to do
 */
export function checkOwnDirectory(path: string, purpose: string): void {
  const wanted = resolve(path);
  const there = nearestExisting(wanted);
  const start = realpathSync.native(there);
  for (let at = start; ; at = dirname(at)) {
    const isParent = there !== wanted || at !== start;
    const objection = objectionTo(at, isParent);
    if (objection) {
      throw new NodeplaneError(
        'ERR_UNSAFE_PATH',
        `Cannot use the directory "${path}" for ${purpose}: ${objection}; name another one, or make it root's and take the right to write from others (chown root, chmod go-w)`,
        { facts: { path, directory: at } },
      );
    }
    if (at === dirname(at)) return;
  }
}

function objectionTo(directory: string, isParent: boolean): string | undefined {
  const stat = statSync(directory);
  if (!stat.isDirectory()) return `"${directory}" is no directory`;
  if (!isTrusted(stat.uid)) return `"${directory}" belongs to user ${stat.uid}, who could replace what is in it`;
  const mayWrite = (stat.mode & WRITABLE_BY_OTHERS) !== 0 && !(isParent && (stat.mode & STICKY) !== 0);
  const mode = (stat.mode & 0o7777).toString(8).padStart(4, '0');
  return mayWrite ? `"${directory}" has mode ${mode}, so that others could replace what is in it` : undefined;
}

/** Whether what belongs to this user is as good as ours: root can do anything anyway. */
export function isTrusted(uid: number): boolean {
  return uid === 0 || uid === process.geteuid?.();
}

function nearestExisting(path: string): string {
  let at = path;
  while (!statSync(at, { throwIfNoEntry: false }) && at !== dirname(at)) at = dirname(at);
  return at;
}
