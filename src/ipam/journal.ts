import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatIp, type IpAddress, isNotFound, tryParseIp } from '../core/index.ts';
import type { Owner } from './record.ts';

/** What is noted about one attachment beyond what host-local's layout has room for. */
export interface JournalEntry {
  /** What the entry is found by; the name of the attachment's link on the host. */
  readonly name: string;
  readonly owner: Owner;
  /** Reserved for it; some may never have been, when its ADD was killed. */
  readonly addresses: readonly IpAddress[];
  /** Names of the features set up for it. */
  readonly features: readonly string[];
  /** The kernel's run in which it was made. */
  readonly bootId: string;
  /** The process that makes or made it, by number and start time. */
  readonly maker: string;
  /** False while its ADD is under way, and for good when that was killed. */
  readonly complete: boolean;
}

const FOLDER = '.nodeplane';
const UNDER_WAY = '.adding';
const BOOT_ID = 'boot-id';

/**
 * Notes about the attachments of one network, in a folder inside its directory of reservations, where host-local does not
 * mind it. An entry is there before anything of its attachment is, and goes last.
 *
 * Entries are not synced: after a loss of power no attachment is left for the notes to describe. The note of the kernel's
 * run is, because from it the next run knows that reservations are of an earlier one. A file that cannot be read counts as
 * none.
 */
export class Journal {
  readonly path: string;

  constructor(networkDirectory: string) {
    this.path = join(networkDirectory, FOLDER);
  }

  /** Notes an attachment that is about to be made. */
  begin(entry: Omit<JournalEntry, 'complete'>): void {
    const { name, owner, addresses, features, bootId, maker } = entry;
    mkdirSync(this.path, { recursive: true, mode: 0o755 });
    const content = { ...owner, addresses: addresses.map(formatIp), features, bootId, maker };
    // Under a name of its own first: a half-written file under this one would say that there is no entry.
    const temporary = join(this.path, `${name}.tmp`);
    writeFileSync(temporary, JSON.stringify(content), { mode: 0o600 });
    renameSync(temporary, this.#underWay(name));
    removeIfThere(this.#complete(name));
  }

  /** Notes that the attachment stands. */
  complete(name: string): void {
    renameSync(this.#underWay(name), this.#complete(name));
  }

  read(name: string): JournalEntry | undefined {
    return this.#load(this.#complete(name), name, true) ?? this.#load(this.#underWay(name), name, false);
  }

  remove(name: string): void {
    for (const path of [this.#complete(name), this.#underWay(name), join(this.path, `${name}.tmp`)])
      removeIfThere(path);
  }

  list(): JournalEntry[] {
    const names = new Set<string>();
    for (const file of this.#files()) {
      if (file !== BOOT_ID && !file.endsWith('.tmp'))
        names.add(file.endsWith(UNDER_WAY) ? file.slice(0, -UNDER_WAY.length) : file);
    }
    return [...names].flatMap((name) => this.read(name) ?? []);
  }

  /** The kernel's run in which this network was last used; undefined when that is not known. */
  lastBootId(): string | undefined {
    try {
      return readFileSync(join(this.path, BOOT_ID), 'utf8').trim() || undefined;
    } catch {
      return undefined;
    }
  }

  noteBootId(id: string): void {
    mkdirSync(this.path, { recursive: true, mode: 0o755 });
    const temporary = join(this.path, `${BOOT_ID}.tmp`);
    writeFileSync(temporary, id, { mode: 0o600, flush: true });
    renameSync(temporary, join(this.path, BOOT_ID));
  }

  #files(): string[] {
    try {
      return readdirSync(this.path);
    } catch {
      return [];
    }
  }

  #complete(name: string): string {
    return join(this.path, name);
  }

  #underWay(name: string): string {
    return join(this.path, `${name}${UNDER_WAY}`);
  }

  #load(path: string, name: string, complete: boolean): JournalEntry | undefined {
    try {
      const { containerId, ifname, addresses, features, bootId, maker } = JSON.parse(readFileSync(path, 'utf8'));
      if (![containerId, ifname, bootId, maker].every((text) => typeof text === 'string')) return undefined;
      if (!Array.isArray(addresses) || !Array.isArray(features)) return undefined;
      const parsed = addresses.flatMap((text) => (typeof text === 'string' ? (tryParseIp(text) ?? []) : []));
      return {
        name,
        owner: { containerId, ifname },
        addresses: parsed,
        features: features.map(String),
        bootId,
        maker,
        complete,
      };
    } catch {
      return undefined;
    }
  }
}

let ownName: string | undefined;

/** This process, for `maker`. */
export function thisProcess(): string {
  ownName ??= `${process.pid}:${startTime(process.pid)}`;
  return ownName;
}

/** Whether a maker still runs. */
export function isRunning(maker: string): boolean {
  const [pid, started] = maker.split(':');
  return started !== '' && startTime(Number(pid)) === started;
}

/** rmSync with `force` looks at the path twice before it does anything; most of what is asked for is not there. */
function removeIfThere(path: string): void {
  try {
    if (existsSync(path)) unlinkSync(path);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** The kernel's start time of a process, which tells it from a later one with its number; '' when it is gone. */
function startTime(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // proc(5): the second field, in parentheses, may contain anything; the start time is the 22nd.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}
