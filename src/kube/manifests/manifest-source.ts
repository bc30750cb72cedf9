import { isDeepStrictEqual } from 'node:util';
import {
  atOnce,
  type Clock,
  errorText,
  FolderWatch,
  inSlices,
  NodeplaneError,
  systemClock,
  type Timer,
} from '../../core/index.ts';
import type { Resource } from '../resource.ts';
import type { ObjectHandler, ObjectSource, SourceProblem } from '../source.ts';
import type { Manifest } from './manifest-file.ts';
import { ManifestFolder } from './manifest-folder.ts';
import { kindsOf } from './manifest-kinds.ts';
import { ManifestState } from './manifest-state.ts';

/** Between looks that no event asked for; they catch what inotify does not tell (targets of symbolic links, say). */
const POLL_MS = 10_000;
/** The same while the folder is away or cannot be watched. */
const POLL_WITHOUT_WATCH_MS = 1_000;
/** How long no file changes before mistakes between objects are looked for: that goes through all of them. */
const SETTLED_MS = 1000;

export interface ManifestSourceOptions {
  /** The folder of manifests. Its subfolders are not read. */
  readonly folder: string;
  /**
   * What to read, those first that others depend on: within a round objects are told in this order. Selectors are not applied.
   */
  readonly resources: readonly Resource[];
  /** @default the system's clock */
  readonly clock?: Clock;
  /** Told about objects of kinds that are not read. @default nobody */
  readonly debug?: (message: string) => void;
}

/**
 * Kubernetes objects from a folder of YAML and JSON files, which is followed with inotify.
 *
 * Every object takes force on its own: while it has the wrong shape, or another file defines it already, its last good content
 * stays in force and `problems` says why. What is in force and probably not meant is told there as well.
 */
export class ManifestSource implements ObjectSource {
  readonly #folderPath: string;
  readonly #clock: Clock;
  readonly #debug: (message: string) => void;
  readonly #kinds: readonly Resource['kind'][];
  readonly #folder: ManifestFolder;
  readonly #watch: FolderWatch;
  readonly #state: ManifestState;
  #handler: ObjectHandler | undefined;
  #toldProblems: readonly SourceProblem[] = [];
  #folderProblem: string | undefined;
  #timer: Timer | undefined;
  #settled: Timer | undefined;

  constructor(options: ManifestSourceOptions) {
    this.#folderPath = options.folder;
    this.#clock = options.clock ?? systemClock;
    this.#debug = options.debug ?? (() => {});
    this.#kinds = options.resources.map(({ kind }) => kind);
    const kinds = kindsOf(options.resources);
    this.#folder = new ManifestFolder(options.folder, kinds, this.#clock);
    this.#state = new ManifestState(kinds);
    this.#watch = new FolderWatch(options.folder, this.#clock, (names) => this.#round(names));
  }

  /** Tells everything the folder holds, then follows it. Rejects with ERR_CONFIG if the folder cannot be read. */
  async start(handler: ObjectHandler): Promise<void> {
    this.#handler = handler;
    let look: Look;
    try {
      look = this.#look(new Set());
    } catch (error) {
      await this.stop();
      throw new NodeplaneError('ERR_CONFIG', `Cannot read the folder of manifests "${this.#folderPath}"`, {
        facts: { folder: this.#folderPath },
        cause: error,
      });
    }
    this.#take(look);
    // Whoever reads once hears of all mistakes before the end.
    atOnce(this.#state.lookBetween());
    this.#tellProblems();
    for (const { kind } of this.#kinds) this.#handler?.listed?.(kind);
    this.#handler?.synced();
  }

  /** Nothing is told after this. */
  async stop(): Promise<void> {
    this.#handler = undefined;
    this.#watch.close();
    this.#timer?.cancel();
    this.#settled?.cancel();
  }

  /** Every look after the first: that the folder is away is now a problem, not an error. */
  #round(suspects: ReadonlySet<string>): void {
    let look: Look;
    try {
      look = this.#look(suspects);
    } catch (error) {
      const message = `The folder of manifests cannot be read, its last state stays in force: ${errorText(error)}`;
      look = { files: new Map(), folderProblem: message, nextLookMs: POLL_WITHOUT_WATCH_MS };
    }
    this.#take(look);
    this.#tellProblems();
    if (look.files.size === 0 || !this.#handler) return;
    this.#settled?.cancel();
    this.#settled = this.#clock.setTimer(async () => {
      await inSlices(this.#state.lookBetween());
      this.#tellProblems();
    }, SETTLED_MS);
  }

  /** Throws the system's error if the folder cannot be listed. */
  #look(suspects: ReadonlySet<string>): Look {
    // Watching comes first: a change after the look must find the watch in place.
    const watchFailure = this.#watch.refresh();
    const { files, recheckMs = POLL_MS } = this.#folder.changes(suspects);
    if (watchFailure === undefined) return { files, folderProblem: undefined, nextLookMs: recheckMs };
    const folderProblem = `Changes cannot be watched, so the folder is read every second instead: ${watchFailure}`;
    return { files, folderProblem, nextLookMs: Math.min(recheckMs, POLL_WITHOUT_WATCH_MS) };
  }

  #take({ files, folderProblem, nextLookMs }: Look): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(() => this.#round(new Set()), nextLookMs);
    this.#folderProblem = folderProblem;
    for (const [name, manifest] of files) {
      for (const object of manifest?.ignored ?? []) this.#debug(`${name}: ${object} is of a kind that is not read`);
    }
    const events = files.size > 0 ? this.#state.update(files) : [];
    // The handler may stop the source at any call.
    for (const event of events) this.#handler?.event(event);
  }

  #tellProblems(): void {
    const problems = [...this.#state.problems()];
    if (this.#folderProblem !== undefined) problems.unshift({ where: this.#folderPath, message: this.#folderProblem });
    if (isDeepStrictEqual(problems, this.#toldProblems)) return;
    this.#toldProblems = problems;
    this.#handler?.problems(problems);
  }
}

/** What one look at the folder found. */
interface Look {
  readonly files: ReadonlyMap<string, Manifest | undefined>;
  /** What is wrong with the folder as a whole. */
  readonly folderProblem: string | undefined;
  readonly nextLookMs: number;
}
