import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { makeOwnDirectory } from '../../sys/index.ts';
import { LARGEST_CONFIG, LARGEST_VARIABLES } from './protocol.ts';

/** A request the plugin kept while no agent ran. */
export interface KeptRequest {
  readonly name: string;
  /** As it would have come over the socket. */
  readonly bytes: Uint8Array;
}

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

  constructor(directory: string) {
    this.directory = directory;
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

  /** All kept requests, the oldest first. One that cannot be a request, because it is too large, is left out and stays. */
  list(): KeptRequest[] {
    return this.#names().flatMap((name) => {
      const path = join(this.directory, name);
      const stat = statSync(path, { throwIfNoEntry: false });
      // The plugin itself takes a request back when it finds an agent after all.
      return stat?.isFile() && stat.size <= LARGEST ? readIfThere(name, path) : [];
    });
  }

  remove(name: string): void {
    rmSync(join(this.directory, name), { force: true });
  }

  /** Removes what killed plugins left half-written. */
  sweep(now: number): void {
    for (const name of this.#entries().filter((entry) => TEMPORARY.test(entry))) {
      const stat = statSync(join(this.directory, name), { throwIfNoEntry: false });
      if (stat && now - stat.mtimeMs > ABANDONED_MS) this.remove(name);
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

function readIfThere(name: string, path: string): KeptRequest[] {
  try {
    return [{ name, bytes: readFileSync(path) }];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
