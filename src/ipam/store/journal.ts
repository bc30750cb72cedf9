import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  attempt,
  formatIp,
  type IpAddress,
  ifPresent,
  isNotFound,
  JSON_LIMITS,
  parseJson,
  tryParseIp,
} from '../../core/index.ts';
import { syncFolder } from '../../sys/index.ts';
import { type Maker, makerKeys, parseMaker } from './maker.ts';
import type { Owner } from './record.ts';

/** What the plugin notes for itself about an attachment, as an object of JSON; nothing here looks into it. */
export type AttachmentNote = Readonly<Record<string, unknown>>;

/** What is noted about one attachment beyond what host-local's layout has room for. */
export interface JournalEntry {
  /** What the entry is found by; the name of the attachment's link on the host. */
  readonly name: string;
  readonly owner: Owner;
  /** Reserved for it; some may never have been, when its ADD was killed. */
  readonly addresses: readonly IpAddress[];
  /** Names of the features set up for it. */
  readonly features: readonly string[];
  /** What its maker wants to be found besides; undefined when there is nothing, as in entries of earlier versions. */
  readonly note: AttachmentNote | undefined;
  readonly maker: Maker;
  /** False while its ADD is under way, and for good when that was killed. */
  readonly complete: boolean;
}

const FOLDER = '.nodeplane';
const UNDER_WAY = '.adding';
const BOOT_ID = 'boot-id';
/** Of the holder of the network's lock: what a full disk or a kill leaves of it, the next one writes over. */
const TEMPORARY = 'entry.tmp';
/** Of a link (IFNAMSIZ without its NUL). A longer name is no entry but somebody's copy of one, which speaks for no attachment. */
const LONGEST_NAME = 15;

/**
 * Notes about the attachments of one network, in a folder inside its directory of reservations, where host-local does not
 * mind it. An entry is there before anything of its attachment is, and goes last.
 *
 * Entries are not synced: after a loss of power no attachment is left for the notes to describe. The note of the kernel's
 * run is, because from it the next run knows that reservations are of an earlier one. A file that cannot be read counts as
 * none; `damaged` tells of it.
 */
export class Journal {
  readonly path: string;

  constructor(networkDirectory: string) {
    this.path = join(networkDirectory, FOLDER);
  }

  /** Whether anything was noted since the network's directory was made. */
  exists(): boolean {
    return existsSync(this.path);
  }

  /** Notes an attachment that is about to be made. Call it with the network's lock held. */
  begin(entry: Omit<JournalEntry, 'complete'>): void {
    const { name, owner, addresses, features, note, maker } = entry;
    mkdirSync(this.path, { recursive: true, mode: 0o755 });
    const content = { ...owner, addresses: addresses.map(formatIp), features, note, ...makerKeys(maker) };
    // Under a name of its own first: a half-written file under this one would say that there is no entry.
    const temporary = join(this.path, TEMPORARY);
    writeFileSync(temporary, JSON.stringify(content), { mode: 0o600 });
    renameSync(temporary, this.#underWay(name));
    removeIfThere(this.#complete(name));
  }

  /** Notes that nobody makes the attachment any more. False when that was so before. */
  complete(name: string): boolean {
    try {
      renameSync(this.#underWay(name), this.#complete(name));
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  read(name: string): JournalEntry | undefined {
    return this.#load(this.#complete(name), name, true) ?? this.#load(this.#underWay(name), name, false);
  }

  remove(name: string): void {
    for (const path of [this.#complete(name), this.#underWay(name)]) removeIfThere(path);
  }

  list(): JournalEntry[] {
    // One that was completed between two looks of `read` is there at the next.
    return this.#names().flatMap((name) => this.read(name) ?? this.read(name) ?? []);
  }

  /** The kernel's run in which this network was last used; undefined when that is not known. */
  lastBootId(): string | undefined {
    return attempt(() => readFileSync(join(this.path, BOOT_ID), 'utf8').trim() || undefined);
  }

  /** Once per network and run of the kernel. On disk when it returns, with its name. */
  noteBootId(id: string): void {
    mkdirSync(this.path, { recursive: true, mode: 0o755 });
    const temporary = join(this.path, `${BOOT_ID}.tmp`);
    writeFileSync(temporary, id, { mode: 0o600, flush: true });
    renameSync(temporary, join(this.path, BOOT_ID));
    syncFolder(this.path);
  }

  /** The attachments whose files are there and cannot be read as entries: what a loss of power or a failing disk left of them. */
  damaged(): string[] {
    const entries = new Set(this.list().map(({ name }) => name));
    // One that was removed meanwhile is not there any more.
    return this.#names().filter((name) => !entries.has(name) && !this.read(name) && this.fileOf(name) !== undefined);
  }

  /** The file of an attachment, whatever is in it; undefined when there is none. */
  fileOf(name: string): string | undefined {
    return [this.#complete(name), this.#underWay(name)].find((path) => existsSync(path));
  }

  /** Removes the damaged. Call it with the network's lock held. */
  sweep(): void {
    for (const name of this.damaged()) this.remove(name);
  }

  /** Of all files that are called as entries are. */
  #names(): string[] {
    const files = this.#files().filter((file) => file !== BOOT_ID && !file.endsWith('.tmp'));
    const names = files.map((file) => (file.endsWith(UNDER_WAY) ? file.slice(0, -UNDER_WAY.length) : file));
    return [...new Set(names)].filter((name) => name.length <= LONGEST_NAME);
  }

  #files(): string[] {
    return attempt(() => readdirSync(this.path)) ?? [];
  }

  #complete(name: string): string {
    return join(this.path, name);
  }

  #underWay(name: string): string {
    return join(this.path, `${name}${UNDER_WAY}`);
  }

  #load(path: string, name: string, complete: boolean): JournalEntry | undefined {
    // An ADD looks for what is not there, and an error takes longer than to look first.
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat?.isFile() || stat.size > JSON_LIMITS.length) return undefined;
    try {
      const content = parseJson(readFileSync(path, 'utf8')) as Readonly<Record<string, unknown>>;
      const { containerId, ifname, addresses, features, note, ...rest } = content;
      const maker = parseMaker(rest);
      if (typeof containerId !== 'string' || typeof ifname !== 'string' || !maker) return undefined;
      if (!Array.isArray(addresses) || !Array.isArray(features)) return undefined;
      const parsed = addresses.flatMap((text) => (typeof text === 'string' ? (tryParseIp(text) ?? []) : []));
      return {
        name,
        owner: { containerId, ifname },
        addresses: parsed,
        features: features.map(String),
        note: typeof note === 'object' && note ? (note as AttachmentNote) : undefined,
        maker,
        complete,
      };
    } catch {
      return undefined;
    }
  }
}

/** rmSync with `force` looks at the path twice before it does anything; most of what is asked for is not there. */
function removeIfThere(path: string): void {
  if (existsSync(path)) ifPresent(() => unlinkSync(path));
}
