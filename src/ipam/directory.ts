import * as nodeFs from 'node:fs';
import { join } from 'node:path';
import { formatIp, type IpAddress, tryParseIp } from '../core/index.ts';

/** The part of node:fs that changes the directory; replaced in tests that crash between any two steps. */
export type Files = Pick<
  typeof nodeFs,
  'openSync' | 'writeSync' | 'fsyncSync' | 'closeSync' | 'linkSync' | 'renameSync' | 'unlinkSync' | 'mkdirSync'
>;

/** A reservation as found on disk. */
export interface StoredReservation {
  readonly address: IpAddress;
  readonly fileName: string;
  /** '' when the file cannot be read: the address counts as taken all the same. */
  readonly content: string;
}

const TEMPORARY = '.nodeplane-tmp-';

/**
 * One network's directory in host-local's layout: a file per address named by the address, `last_reserved_ip.<set>`, and
 * `lock`. Every method but `create` expects the caller to hold the lock.
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
    const firstCreated = this.#files.mkdirSync(this.path, { recursive: true, mode: 0o755 });
    if (firstCreated !== undefined) this.#syncFolder(join(this.path, '..'));
  }

  list(): StoredReservation[] {
    const found: StoredReservation[] = [];
    for (const fileName of nodeFs.readdirSync(this.path)) {
      const address = tryParseIp(fileName);
      if (address) found.push({ address, fileName, content: readOrEmpty(join(this.path, fileName)) });
    }
    return found;
  }

  /** What crashed runs left: nobody else writes such files while the lock is held. */
  sweep(): void {
    for (const fileName of nodeFs.readdirSync(this.path)) {
      if (fileName.startsWith(TEMPORARY)) this.#files.unlinkSync(join(this.path, fileName));
    }
  }

  /**
   * Adds a reservation that is complete whenever it is visible: written and synced under a temporary name, then linked to
   * its own. Unlike a rename, link(2) fails when the name exists, so it never takes an address from another owner.
   *
   * @returns the name of the file
   */
  add(address: IpAddress, content: string): string {
    const fileName = formatIp(address);
    const temporary = this.#writeTemporary(content, { sync: true });
    try {
      this.#files.linkSync(temporary, join(this.path, fileName));
    } finally {
      this.#files.unlinkSync(temporary);
    }
    return fileName;
  }

  remove(fileName: string): void {
    this.#files.unlinkSync(join(this.path, fileName));
  }

  lastReserved(set: number): IpAddress | undefined {
    return tryParseIp(readOrEmpty(this.#lastReservedPath(set)).trim());
  }

  /** Not synced: losing it costs the position in the round, nothing else. */
  setLastReserved(set: number, address: IpAddress): void {
    this.#files.renameSync(this.#writeTemporary(formatIp(address), { sync: false }), this.#lastReservedPath(set));
  }

  /** Makes additions and removals durable. */
  sync(): void {
    this.#syncFolder(this.path);
  }

  #lastReservedPath(set: number): string {
    return join(this.path, `last_reserved_ip.${set}`);
  }

  #writeTemporary(content: string, { sync }: { sync: boolean }): string {
    const path = join(this.path, `${TEMPORARY}${process.pid}`);
    const fd = this.#files.openSync(path, 'wx', 0o600);
    try {
      const written = this.#files.writeSync(fd, content);
      if (written !== Buffer.byteLength(content)) throw new Error(`Wrote only ${written} bytes of "${path}"`);
      if (sync) this.#files.fsyncSync(fd);
    } catch (error) {
      this.#files.unlinkSync(path);
      throw error;
    } finally {
      this.#files.closeSync(fd);
    }
    return path;
  }

  #syncFolder(path: string): void {
    const fd = this.#files.openSync(path, 'r');
    try {
      this.#files.fsyncSync(fd);
    } finally {
      this.#files.closeSync(fd);
    }
  }
}

function readOrEmpty(path: string): string {
  try {
    return nodeFs.readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
