import { type BigIntStats, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { attempt, type Clock, errorText } from '../../core/index.ts';
import type { SourceProblem } from '../source.ts';
import { type Manifest, readManifest } from './manifest-file.ts';
import type { ManifestKinds } from './manifest-kinds.ts';

/** Leaves out hidden files and what editors leave behind (`web.yaml~`, `#web.yaml#`, `.web.yaml.swp`, `web.yaml.bak`). */
const MANIFEST_NAME = /^[^.].*\.(yaml|yml|json)$/is;
/** No line of the log, and no FILE:LINE, could name such a file. */
const LINE_BREAK = /[\n\r]/;

/**
 * How long a file that had content may be empty before that is believed. Writing a file in place (`>`, `cp`) truncates it
 * first; taking that moment for the new content would delete every object of the file.
 */
const EMPTY_FILE_GRACE_MS = 500;

/** Bytes of a file that is read: 50,000 Services as JSON have half of that. All of it is in memory, twice, while it is read. */
const LARGEST_FILE = 64n * 1024n * 1024n;

/** What became of a folder since the last look. */
export interface FolderChanges {
  /** New contents by file name; undefined: the file is gone. */
  readonly files: ReadonlyMap<string, Manifest | undefined>;
  /** Look again after so many milliseconds, event or not. */
  readonly recheckMs: number | undefined;
}

/** A file as it was when it was read. */
interface KnownFile {
  /** What stat said; undefined: it could not be read and is tried each time. */
  readonly stamp: string | undefined;
  readonly isEmpty: boolean;
  /** Since when it is empty without that being believed, in the clock's milliseconds. */
  readonly emptySince?: number;
}

/**
 * Reads the manifests of one folder and remembers which it has read. All file access is synchronous: a round then sees
 * one moment of the folder, and the files are local and few.
 */
export class ManifestFolder {
  readonly #folder: string;
  readonly #kinds: ManifestKinds;
  readonly #clock: Clock;
  #known: ReadonlyMap<string, KnownFile> = new Map();

  constructor(folder: string, kinds: ManifestKinds, clock: Clock) {
    this.#folder = folder;
    this.#kinds = kinds;
    this.#clock = clock;
  }

  /**
   * Reads the files that changed since the last call: those whose stat differs, and those in `suspects`, which may
   * have been written twice within one tick of the file system's clock. Throws the system's error if the folder cannot
   * be listed; a file that cannot be read is a manifest with a problem.
   */
  changes(suspects: ReadonlySet<string>): FolderChanges {
    const entries = readdirSync(this.#folder, { withFileTypes: true });
    const names = entries.filter(({ name }) => MANIFEST_NAME.test(name)).map(({ name }) => name);
    const known = new Map<string, KnownFile>();
    const files = new Map<string, Manifest | undefined>();
    let recheckMs: number | undefined;
    for (const name of names.sort()) {
      const before = this.#known.get(name);
      if (LINE_BREAK.test(name)) {
        known.set(name, { stamp: '', isEmpty: true });
        if (!before) files.set(name, nothingBut({ where: JSON.stringify(name), message: NAMED_IN_LINES }));
        continue;
      }
      try {
        const stats = this.#stat(name);
        if (!stats) continue;
        const stamp = stampOf(stats);
        const isEmpty = stats.size === 0n;
        const graceMs = isEmpty ? this.#graceLeft(before) : 0;
        if (before && graceMs > 0) {
          recheckMs = Math.min(graceMs, recheckMs ?? graceMs);
          known.set(name, { ...before, emptySince: before.emptySince ?? this.#clock.now() });
        } else {
          known.set(name, { stamp, isEmpty });
          if (stamp !== before?.stamp || suspects.has(name)) files.set(name, this.#read(name));
        }
      } catch (error) {
        known.set(name, { stamp: undefined, isEmpty: true });
        files.set(name, nothingBut({ where: name, message: `Cannot be read: ${errorText(error)}` }));
      }
    }
    for (const entry of entries) if (entry.isDirectory()) this.#lookInto(`${entry.name}/`, known, files);
    for (const name of this.#known.keys()) if (!known.has(name)) files.set(name, undefined);
    this.#known = known;
    return { files, recheckMs };
  }

  /** Says of a subfolder that its manifests are not read. Hidden ones are those of a mounted ConfigMap. */
  #lookInto(name: string, known: Map<string, KnownFile>, files: Map<string, Manifest | undefined>): void {
    if (name.startsWith('.')) return;
    const found = manifestsIn(join(this.#folder, name)).sort();
    if (found.length === 0) return;
    const stamp = found.join('/');
    known.set(name, { stamp, isEmpty: true });
    if (stamp === this.#known.get(name)?.stamp) return;
    const manifests = found.length === 1 ? `"${found[0]}"` : `${found.length} manifests, "${found[0]}" the first,`;
    const message = `Subfolders are not read: ${manifests} in it can be moved up, or put into one file`;
    files.set(name, nothingBut({ where: name, message, inForce: true }));
  }

  /** Undefined for what is not a file (folders, sockets) or went away since it was listed. Follows symbolic links. */
  #stat(name: string): BigIntStats | undefined {
    const path = join(this.#folder, name);
    const options = { bigint: true, throwIfNoEntry: false } as const;
    const stats = statSync(path, options);
    if (!stats && lstatSync(path, options)) throw new Error('it is a symbolic link to nothing');
    if (!stats?.isFile()) return undefined;
    if (stats.size > LARGEST_FILE) throw new Error(`it has ${stats.size} bytes, at most ${LARGEST_FILE} are read`);
    return stats;
  }

  #graceLeft(before: KnownFile | undefined): number {
    if (!before || before.isEmpty) return 0;
    if (before.emptySince === undefined) return EMPTY_FILE_GRACE_MS;
    return EMPTY_FILE_GRACE_MS - (this.#clock.now() - before.emptySince);
  }

  #read(name: string): Manifest {
    return readManifest(name, readFileSync(join(this.#folder, name), 'utf8'), this.#kinds);
  }
}

const NAMED_IN_LINES = 'Is not read: its name has a line break; rename it';

/** None of a folder that cannot be listed, or is gone. */
function manifestsIn(folder: string): string[] {
  return attempt(() => readdirSync(folder).filter((name) => MANIFEST_NAME.test(name))) ?? [];
}

function stampOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}

function nothingBut(problem: SourceProblem): Manifest {
  return { objects: [], problems: [problem], refused: [], ignored: [] };
}
