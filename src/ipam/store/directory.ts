import * as nodeFs from 'node:fs';
import { join } from 'node:path';
import { attempt, formatIp, type IpAddress, tryParseIp } from '../../core/index.ts';

/** The part of node:fs that changes the directory; replaced in tests that crash between any two steps. */
export type Files = Pick<
  typeof nodeFs,
  'openSync' | 'writeSync' | 'ftruncateSync' | 'closeSync' | 'linkSync' | 'unlinkSync' | 'mkdirSync'
>;

/** A reservation as found on disk. */
export interface StoredReservation {
  readonly address: IpAddress;
  readonly fileName: string;
  /** '' when the file cannot be read: the address counts as taken all the same. */
  readonly content: string;
}

/** Of one process at a time, the holder of the lock. */
const TEMPORARY = '.nodeplane-tmp';

/**
 * One network's directory in host-local's layout: a file per address named by the address, `last_reserved_ip.<set>`, and
 * `lock`. Every method but `create` expects the caller to hold the lock. Nothing is synced: a loss of power ends the pods too,
 * and the next run of the kernel gives back what comes back of their reservations (`forgetEarlierBoots`).
 */
export class ReservationDirectory {
  readonly path: string;
  readonly #files: Files;

  constructor(path: string, files: Files = nodeFs) {
    this.path = path;
    this.#files = files;
  }

  get lockPath(): string {
    return join(this.path, 'lock');
  }

  exists(): boolean {
    return nodeFs.existsSync(this.path);
  }

  create(): void {
    this.#files.mkdirSync(this.path, { recursive: true, mode: 0o755 });
  }

  /** Whether an address is taken. The cost does not grow with the directory; `join` would be a quarter of it. */
  has(address: IpAddress): boolean {
    return nodeFs.existsSync(`${this.path}/${formatIp(address)}`);
  }

  fileName(address: IpAddress): string {
    return formatIp(address);
  }

  /** Who holds an address, as its file says; undefined when it is free, '' when the file cannot be read. */
  content(address: IpAddress): string | undefined {
    return this.has(address) ? readOrEmpty(join(this.path, formatIp(address))) : undefined;
  }

  /** All taken addresses, without looking into their files. */
  addresses(): IpAddress[] {
    return nodeFs.readdirSync(this.path).flatMap((fileName) => tryParseIp(fileName) ?? []);
  }

  /** All reservations with what their files say: as many files are read as there are addresses in use. */
  list(): StoredReservation[] {
    const found: StoredReservation[] = [];
    for (const fileName of nodeFs.readdirSync(this.path)) {
      const address = tryParseIp(fileName);
      if (address) found.push({ address, fileName, content: readOrEmpty(join(this.path, fileName)) });
    }
    return found;
  }

  /** What a killed run left: nobody else writes such a file while the lock is held. It may be linked to a reservation. */
  sweep(): void {
    const path = join(this.path, TEMPORARY);
    if (nodeFs.existsSync(path)) this.#files.unlinkSync(path);
  }

  /**
   * Adds a reservation that is complete whenever another process sees it: written under a temporary name, then linked to
   * its own. Unlike a rename, link(2) fails when the name exists, so it never takes an address from another owner.
   */
  add(address: IpAddress, content: string): void {
    const temporary = this.#writeTemporary(content);
    try {
      this.#files.linkSync(temporary, join(this.path, formatIp(address)));
    } finally {
      this.#files.unlinkSync(temporary);
    }
  }

  remove(fileName: string): void {
    this.#files.unlinkSync(join(this.path, fileName));
  }

  /** When a reservation was made or changed, in milliseconds since 1970; 0 when it is gone. */
  changedMs(fileName: string): number {
    return nodeFs.statSync(join(this.path, fileName), { throwIfNoEntry: false })?.ctimeMs ?? 0;
  }

  /** Why no reservation can be made here, or in the folder where the directory would be made; undefined: one can. */
  obstacle(): string | undefined {
    let path = this.path;
    while (!nodeFs.existsSync(path)) path = join(path, '..');
    try {
      nodeFs.accessSync(path, nodeFs.constants.W_OK | nodeFs.constants.X_OK);
      if (!nodeFs.statSync(path).isDirectory()) return 'it is not writable';
      const { blocks, bfree, files, ffree } = nodeFs.statfsSync(path);
      // What has no limit tells of none.
      const isFull = (blocks > 0 && bfree === 0) || (files > 0 && ffree === 0);
      return isFull ? 'no space is left on its disk: df -h and df -i tell' : undefined;
    } catch {
      return 'it is not writable';
    }
  }

  lastReserved(set: number): IpAddress | undefined {
    return tryParseIp(readOrEmpty(this.#lastReservedPath(set)).trim());
  }

  /**
   * Written over what was there: losing it, or half of it, costs the position in the round and nothing else. File systems
   * write out at once what replaces another file, by a rename as by O_TRUNC; that would be waited for.
   */
  setLastReserved(set: number, address: IpAddress): void {
    const text = formatIp(address);
    const { O_WRONLY, O_CREAT } = nodeFs.constants;
    const fd = this.#files.openSync(this.#lastReservedPath(set), O_WRONLY | O_CREAT, 0o600);
    try {
      this.#files.writeSync(fd, text, 0);
      if (nodeFs.fstatSync(fd).size !== text.length) this.#files.ftruncateSync(fd, text.length);
    } finally {
      this.#files.closeSync(fd);
    }
  }

  #lastReservedPath(set: number): string {
    return join(this.path, `last_reserved_ip.${set}`);
  }

  #writeTemporary(content: string): string {
    const path = join(this.path, TEMPORARY);
    const fd = this.#files.openSync(path, 'wx', 0o600);
    try {
      const written = this.#files.writeSync(fd, content);
      if (written !== Buffer.byteLength(content)) throw new Error(`Wrote only ${written} bytes of "${path}"`);
    } catch (error) {
      this.#files.unlinkSync(path);
      throw error;
    } finally {
      this.#files.closeSync(fd);
    }
    return path;
  }
}

function readOrEmpty(path: string): string {
  return attempt(() => nodeFs.readFileSync(path, 'utf8')) ?? '';
}
