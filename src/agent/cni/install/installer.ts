import { closeSync, mkdirSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { configurationsInFront } from '../../../cni/index.ts';
import {
  attempt,
  type Clock,
  errorText,
  FolderWatch,
  Pace,
  parseJson,
  REPAIRS,
  readGivenFile,
  type Timer,
} from '../../../core/index.ts';
import { type Logger, RepeatedNews } from '../../logger.ts';
import { CONFLIST_FILE, type Conflist, PLUGIN_NAME } from './conflist.ts';
import { placeFile, readIfThere } from './host-file.ts';
import { installPlugin } from './plugin.ts';

export interface InstallerOptions {
  /** Where the runtime looks for plugins. */
  readonly binDir: string;
  /** Where it looks for configurations. */
  readonly confDir: string;
  /** The plugin for the host. */
  readonly plugin: Uint8Array;
  readonly conflist: Conflist;
  /** Why an ADD would fail now; undefined when it would succeed. */
  readonly objection: () => Promise<string | undefined>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const WAITING_MS = 1000;
const INSTALLED_MS = 60_000;
/** How long a start may take that needs nobody: the node's pod CIDRs come with the objects of the API server. */
const ORDINARY_WAIT_MS = 30_000;
const NOT_INSTALLED = 'The CNI configuration is not installed yet, or not looked after';

/**
 * Puts plugin and configuration on the host, the configuration last: from then on the runtime makes pods. Upgrades of the
 * runtime and other installers replace them, or remove them: the folders are watched, and looked at again now and then. Nothing is
 * removed here, also not at the end: without configuration the runtime could not remove its pods either.
 */
export class CniInstaller {
  readonly #options: InstallerOptions;
  #timer: Timer | undefined;
  #stopped = false;
  #running: Promise<void> = Promise.resolve();
  #lastTrouble = '';
  #looked = false;
  readonly #watches: readonly FolderWatch[];
  /** A look that a change in the folders has asked for. */
  #asked: Timer | undefined;
  readonly #pace = new Pace(REPAIRS);
  /** Whether the configuration was there, or put there. */
  #installed = false;
  readonly #replaced: RepeatedNews;
  readonly #displaced: RepeatedNews;
  /** Configurations of others that the runtime takes before ours. */
  #inFront: readonly string[] = [];
  /** Since when an ADD would fail, and whether people were warned of it. */
  #waiting: { readonly since: number; warned: boolean } | undefined;

  constructor(options: InstallerOptions) {
    this.#options = options;
    const { binDir, confDir, clock, logger } = options;
    this.#watches = [binDir, confDir].map((folder) => new FolderWatch(folder, clock, () => this.#changed()));
    this.#replaced = new RepeatedNews(logger, clock);
    this.#displaced = new RepeatedNews(logger, clock);
  }

  /** Installs what can be installed by now, and goes on doing so. Does not reject. */
  start(): Promise<void> {
    return this.look();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#asked?.cancel();
    await this.#running;
    for (const watch of this.#watches) watch.close();
    this.#timer?.cancel();
  }

  /** Why the runtime cannot make pods; undefined: plugin and configuration are there, and an ADD would succeed. */
  whyNotInstalled(): string | undefined {
    if (!this.#looked) return 'it was not looked at yet';
    return this.#lastTrouble === '' ? undefined : this.#lastTrouble;
  }

  /** Why the runtime makes pods without us though all is installed: a sentence; empty: it asks us. */
  whyNotAsked(): string {
    const { confDir } = this.#options;
    const [first] = this.#inFront;
    if (first === undefined) return '';
    return `the container runtime takes "${join(confDir, first)}", which sorts before ${CONFLIST_FILE}: rename or remove ${this.#inFront.join(', ')}`;
  }

  /** Looks at once, because something changed that ADD needs. */
  look(): Promise<void> {
    const round = () => this.#round();
    this.#running = this.#running.then(round, round);
    return this.#running;
  }

  #changed(): void {
    const { clock } = this.#options;
    if (this.#stopped) return;
    this.#asked ??= clock.setTimer(() => {
      this.#asked = undefined;
      this.#pace.passed(clock.now());
      return this.look();
    }, this.#pace.leftMs(clock.now()));
  }

  async #round(): Promise<void> {
    const { clock, logger } = this.#options;
    if (this.#stopped) return;
    this.#timer?.cancel();
    this.#watch();
    let trouble = '';
    try {
      this.#makeFolder(this.#options.binDir);
      await installPlugin(this.#options);
      const objection = await this.#options.objection();
      if (objection === undefined) {
        this.#waiting = undefined;
        await this.#installConflist();
        this.#lookInFront();
      } else {
        trouble = `An ADD would fail: ${objection}`;
        this.#waitFor(trouble);
      }
    } catch (error) {
      trouble = errorText(error);
      // The end of an agent ends the thread that was asked.
      if (!this.#stopped && trouble !== this.#lastTrouble) logger.warn({ reason: trouble }, NOT_INSTALLED);
    }
    this.#lastTrouble = trouble;
    this.#looked = true;
    this.#timer = clock.setTimer(() => this.look(), trouble === '' ? INSTALLED_MS : WAITING_MS);
  }

  /** What an ordinary start waits for is no matter for people, unless it does not come. */
  #waitFor(reason: string): void {
    const { clock, logger } = this.#options;
    this.#waiting ??= { since: clock.now(), warned: false };
    const isLate = clock.now() - this.#waiting.since >= ORDINARY_WAIT_MS;
    if (reason === this.#lastTrouble && (!isLate || this.#waiting.warned)) return;
    logger[isLate ? 'warn' : 'info']({ reason }, NOT_INSTALLED);
    this.#waiting.warned = isLate;
  }

  /** Folders that are not there yet, or cannot be watched, are looked at as often as ever. */
  #watch(): void {
    if (!this.#stopped) for (const watch of this.#watches) attempt(() => watch.refresh());
  }

  /** It is watched before anything is in it: what somebody removes while a slow disk still writes is noticed too. */
  #makeFolder(folder: string): void {
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    this.#watch();
  }

  async #installConflist(): Promise<void> {
    const { confDir, conflist, logger } = this.#options;
    this.#makeFolder(confDir);
    const path = join(confDir, CONFLIST_FILE);
    if (isSameJson(readIfThere(path), conflist.text)) {
      this.#installed = true;
      return;
    }
    await placeFile(path, Buffer.from(conflist.text), 0o644);
    wakeWatchers(confDir);
    const wasInstalled = this.#installed;
    this.#installed = true;
    if (wasInstalled) {
      this.#replaced.tell('warn', { path }, 'Somebody removed or changed the CNI configuration; it is there again');
    } else logger.info({ path }, 'CNI configuration installed: the runtime can make pods');
  }

  /** Other networks leave theirs behind, and their installers and upgrades of the runtime bring them back. */
  #lookInFront(): void {
    const { confDir } = this.#options;
    const read = (name: string) => attempt(() => readGivenFile(join(confDir, name)).toString('utf8'));
    const inFront = configurationsInFront(readdirSync(confDir), { ours: CONFLIST_FILE, type: PLUGIN_NAME, read });
    const before = this.#inFront;
    this.#inFront = inFront;
    if (isDeepStrictEqual(inFront, before)) return;
    if (inFront.length > 0) {
      const message = 'The runtime takes another CNI configuration, whose name sorts before ours: rename or remove it';
      this.#displaced.tell('warn', { confDir, earlier: inFront }, message);
    } else this.#displaced.tell('info', { confDir }, 'The runtime takes our CNI configuration again');
  }
}

/** Formatting does not matter, and a file that is not touched does not make runtimes reload. */
function isSameJson(there: Buffer | undefined, wanted: string): boolean {
  try {
    return there !== undefined && isDeepStrictEqual(parseJson(there.toString('utf8')), parseJson(wanted));
  } catch {
    return false;
  }
}

/**
 * containerd ignores that files appear; the rename in the same directory tells it, but before the new name is there. The
 * removal of a file tells it once more, when all is in place.
 */
function wakeWatchers(directory: string): void {
  const path = join(directory, `.${CONFLIST_FILE}.${process.pid}.wake.tmp`);
  closeSync(openSync(path, 'w', 0o600));
  rmSync(path);
}
