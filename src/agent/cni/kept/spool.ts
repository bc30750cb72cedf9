import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { errorText, NodeplaneError } from '../../../core/index.ts';
import { makeOwnDirectory } from '../../../sys/index.ts';
import { decodeKeptRequest, LARGEST_CONFIG, LARGEST_VARIABLES, type PluginRequest } from '../server/protocol.ts';
import { SetAside } from './set-aside.ts';

/** A request the plugin kept while no agent ran. */
export interface KeptRequest {
  readonly name: string;
  readonly content: KeptContent;
}

/** The request as it would have come over the socket; or why it cannot be had, and whether it never will be. */
export type KeptContent =
  | { readonly kind: 'request'; readonly request: PluginRequest }
  | { readonly kind: 'unreadable'; readonly reason: string; readonly forGood: boolean };

/** What the directory is for, in messages. */
export const SPOOL_PURPOSE = 'kept DEL requests (--cni-spool-dir)';
const NAME = /^[\d.]+-\d+\.request$/;
const TEMPORARY = /^\..*\.tmp$/;
/** Writing one takes milliseconds; what is older than this was left by a plugin that was killed. */
const ABANDONED_MS = 60_000;
const LARGEST = LARGEST_VARIABLES + LARGEST_CONFIG + 16;

/**
 * The directory of DEL requests that came while no agent ran. A file is complete whenever it has its name, because the
 * plugin writes, syncs and renames it; names sort by time.
 */
export class Spool {
  readonly directory: string;
  readonly #setAside: SetAside;

  constructor(directory: string) {
    this.directory = directory;
    this.#setAside = new SetAside(directory);
  }

  /**
   * Makes the directory, for root alone: the plugin uses it and does not make it.
   *
   * @throws ERR_UNSAFE_PATH when others could put requests into it
   */
  create(): void {
    makeOwnDirectory(this.directory, SPOOL_PURPOSE);
  }

  /** How many requests are kept. */
  count(): number {
    return this.#names().length;
  }

  /** All kept requests, the oldest first. */
  list(): KeptRequest[] {
    return this.#names().flatMap((name) => {
      const content = this.#read(name);
      return content === undefined ? [] : [{ name, content }];
    });
  }

  has(name: string): boolean {
    return existsSync(join(this.directory, name));
  }

  remove(name: string): void {
    rmSync(join(this.directory, name), { force: true });
  }

  /**
   * Moves a request that cannot be settled to the folder `set-aside`, for people to look at.
   *
   * @param reason a sentence
   * @returns where it is now
   * @throws errors of node:fs
   */
  setAside(name: string, reason: string): string {
    this.#setAside.put(join(this.directory, name), name, reason);
    return join(this.#setAside.directory, name);
  }

  /**
   * Removes what killed plugins left half-written.
   *
   * @param now calendar time, which the times of files are in
   */
  sweep(now: number): void {
    for (const name of this.#entries().filter((entry) => TEMPORARY.test(entry))) {
      const stat = statSync(join(this.directory, name), { throwIfNoEntry: false });
      if (stat && now - stat.mtimeMs > ABANDONED_MS) this.remove(name);
    }
  }

  /** Undefined when it is there no more: the plugin itself takes a request back when it finds an agent after all. */
  #read(name: string): KeptContent | undefined {
    const path = join(this.directory, name);
    try {
      const stat = statSync(path, { throwIfNoEntry: false });
      if (!stat) return undefined;
      if (!stat.isFile()) return unreadable('It is no file');
      if (stat.size > LARGEST) return unreadable(`It has ${stat.size} bytes, no request more than ${LARGEST}`);
      const request = decodeKeptRequest(readFileSync(path));
      const { CNI_COMMAND: verb } = request.environment;
      return verb === 'DEL' ? { kind: 'request', request } : unreadable(`It is no DEL but ${JSON.stringify(verb)}`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      // A disk that fails, or no descriptor left, may pass.
      return unreadable(errorText(error), error instanceof NodeplaneError);
    }
  }

  #names(): string[] {
    return this.#entries()
      .filter((name) => NAME.test(name))
      .sort();
  }

  #entries(): string[] {
    try {
      return readdirSync(this.directory);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }
}

function unreadable(reason: string, forGood = true): KeptContent {
  return { kind: 'unreadable', reason, forGood };
}
