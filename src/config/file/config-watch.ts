import { attempt, type Clock, errorText, NodeplaneError, type Timer } from '../../core/index.ts';
import type { LoadedFile } from '../command-line.ts';

/** How long after a change the file is read, and read again: a content that stays the same so long is no half-written one. */
const SETTLE_MS = 100;

/** The file system, as the watch sees it. */
export interface WatchedFiles {
  readFile(path: string): string;
  /** The folders in which a change can mean another content of the file: its own, and those of the links on the way to it. */
  foldersOf(path: string): readonly string[];
  /** Calls `changed` at every change in a folder, and `failed` when it can no longer tell. Throws if it cannot watch at all. */
  watch(folder: string, changed: () => void, failed: (cause: unknown) => void): { close(): void };
}

export interface ConfigWatchOptions {
  /** The file with the content that is in force. */
  readonly file: LoadedFile;
  readonly files: WatchedFiles;
  readonly clock: Clock;
  /** How long the end may be put off, so that not all nodes of a cluster end at once. @default 0, as kube-proxy */
  readonly spreadMs?: number;
  /** A number from 0 to 1 (exclusive). @default Math.random */
  readonly random?: () => number;
  /** Told in how many milliseconds the process is to end; undefined: not any more, the content is the one in force again. */
  readonly putOff?: (ms: number | undefined) => void;
  /** Why no process could start with this content, if so: the one that runs goes on with its own then. @default it could */
  readonly objection?: (text: string) => string | undefined;
  /** Told of each such content, once while it stays. */
  readonly refused?: (objection: string) => void;
  /** Called once, when the process should end with this error so that its supervisor starts it anew. */
  readonly ended: (reason: NodeplaneError) => void;
}

/**
 * Notices when the configuration file has another content than the one in force. As in kube-proxy, the process then exits
 * and is started again with the new one.
 *
 * kube-proxy watches the file itself for writes and renames. It misses the update of a mounted ConfigMap, where the kubelet
 * puts a new folder under the link `..data`, and takes a write of the same content for a change. Here the folders are watched
 * and the contents compared. A file that is gone is no change, as in kube-proxy: there is nothing to start again with. Nor is one
 * that cannot be used, with which kube-proxy would end and not come back: a mistake in a ConfigMap reaches all nodes of a cluster.
 */
export class ConfigWatch {
  readonly #options: ConfigWatchOptions;
  #watchers: { close(): void }[] = [];
  #timer: Timer | undefined;
  /** Set while the end is put off. */
  #ending: Timer | undefined;
  /** The content at the last look, if the file was there. */
  #seen: string | undefined;
  /** The last content that cannot be used, until there is another. */
  #refused: string | undefined;
  #over = false;

  constructor(options: ConfigWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#watchFolders();
    // It may have changed between the time it was loaded and now.
    this.#noticed();
  }

  close(): void {
    this.#over = true;
    this.#timer?.cancel();
    this.#ending?.cancel();
    this.#closeWatchers();
  }

  #watchFolders(): void {
    const { file, files } = this.#options;
    this.#closeWatchers();
    try {
      for (const folder of files.foldersOf(file.path)) {
        this.#watchers.push(
          files.watch(
            folder,
            () => this.#noticed(),
            (cause) => this.#failed(cause),
          ),
        );
      }
    } catch (cause) {
      this.#failed(cause);
    }
  }

  #closeWatchers(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }

  #noticed(): void {
    if (this.#over || this.#timer) return;
    this.#timer = this.#options.clock.setTimer(() => this.#compare(), SETTLE_MS);
  }

  #compare(): void {
    const { file, files } = this.#options;
    this.#timer = undefined;
    // The links may lead elsewhere now. Watched again before the file is read, so that no change falls in between.
    this.#watchFolders();
    const now = attempt(() => files.readFile(file.path));
    const settled = now === this.#seen;
    this.#seen = now;
    if (now !== this.#refused) this.#refused = undefined;
    if (now === undefined || now === file.text) {
      this.#stay();
      return;
    }
    if (!settled) {
      this.#noticed();
      return;
    }
    if (this.#refuses(now) || this.#ending) return;
    const { spreadMs = 0, random = Math.random, putOff } = this.#options;
    const text = `content of the proxy server's configuration file was updated: "${file.path}"`;
    const end = () => this.#end(new NodeplaneError('ERR_CONFIG', text));
    if (spreadMs === 0) {
      end();
      return;
    }
    const ms = Math.floor(spreadMs * random());
    putOff?.(ms);
    this.#ending = this.#options.clock.setTimer(end, ms);
  }

  #refuses(text: string): boolean {
    const { objection, refused } = this.#options;
    const reason = objection?.(text);
    if (reason === undefined) return false;
    this.#ending?.cancel();
    this.#ending = undefined;
    if (text !== this.#refused) refused?.(reason);
    this.#refused = text;
    return true;
  }

  /** There is nothing to start anew with: an end that was put off does not come. */
  #stay(): void {
    if (!this.#ending) return;
    this.#ending.cancel();
    this.#ending = undefined;
    this.#options.putOff?.(undefined);
  }

  #failed(cause: unknown): void {
    const { path } = this.#options.file;
    this.#end(new NodeplaneError('ERR_CONFIG', `Cannot watch the configuration file "${path}": ${errorText(cause)}`));
  }

  #end(reason: NodeplaneError): void {
    if (this.#over) return;
    this.close();
    this.#options.ended(reason);
  }
}
