import { type FSWatcher, statSync, watch } from 'node:fs';
import type { Clock, Timer } from './clock.ts';
import { errorText } from './errors.ts';

/** A quiet time after which a burst of writes counts as over: an editor writes and renames within it. */
const QUIET_MS = 10;
/** A file that is written without pause is looked at this long after the first write. */
const LONGEST_BURST_MS = 40;

/**
 * Watches a folder with inotify and reports bursts of changes as one. It watches the folder as it is now (an inode), not its
 * name: call `refresh` in every round, so that a folder that was replaced is watched again.
 */
export class FolderWatch {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #onBurst: (names: ReadonlySet<string>) => void;
  #watcher: FSWatcher | undefined;
  /** Which folder is watched. */
  #identity = '';
  #names = new Set<string>();
  #burstStart: number | undefined;
  #timer: Timer | undefined;

  /** `onBurst` gets the names in the folder that something happened to. */
  constructor(folder: string, clock: Clock, onBurst: (names: ReadonlySet<string>) => void) {
    this.#folder = folder;
    this.#clock = clock;
    this.#onBurst = onBurst;
  }

  /**
   * Watches what now has the folder's name. Throws the system's error when there is no such folder; returns why it
   * cannot be watched (inotify limits), if so.
   */
  refresh(): string | undefined {
    const identity = this.#identify();
    if (this.#watcher && identity === this.#identity) return undefined;
    this.#closeWatcher();
    try {
      const watcher = watch(this.#folder, (_, name) => this.#noticed(name));
      watcher.on('error', () => this.#failed(watcher));
      this.#watcher = watcher;
      this.#identity = identity;
      return undefined;
    } catch (error) {
      return errorText(error);
    }
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#closeWatcher();
  }

  #identify(): string {
    try {
      // A folder made anew often gets the inode number of the one just removed, but not its time of birth.
      const { dev, ino, birthtimeNs } = statSync(this.#folder, { bigint: true });
      return `${dev}:${ino}:${birthtimeNs}`;
    } catch (error) {
      this.#closeWatcher();
      throw error;
    }
  }

  #closeWatcher(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #failed(watcher: FSWatcher): void {
    if (watcher !== this.#watcher) return;
    this.#closeWatcher();
    this.#noticed(null);
  }

  #noticed(name: string | null): void {
    if (name !== null) this.#names.add(name);
    const now = this.#clock.now();
    this.#burstStart ??= now;
    const wait = Math.min(QUIET_MS, this.#burstStart + LONGEST_BURST_MS - now);
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(() => this.#burstOver(), Math.max(0, wait));
  }

  #burstOver(): void {
    const names = this.#names;
    this.#names = new Set();
    this.#burstStart = undefined;
    this.#timer = undefined;
    this.#onBurst(names);
  }
}
