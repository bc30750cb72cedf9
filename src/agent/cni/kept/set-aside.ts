import { readdirSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeOwnDirectory } from '../../../sys/index.ts';

/** Why a kept request will not be tried again. */
export type SetAsideReason = 'unreadable' | 'refused' | 'failed' | 'superseded';

/** How many requests stay for people to look at, and how large all of them may be together, in bytes. */
const MOST = 100;
const LARGEST = 16 << 20;
const SUFFIX = '.reason';

/**
 * The folder inside the spool for requests that cannot be settled, each with the reason in a file beside it. The oldest make
 * room for new ones.
 */
export class SetAside {
  readonly directory: string;

  /** @param spool the directory of kept requests */
  constructor(spool: string) {
    this.directory = join(spool, 'set-aside');
  }

  /**
   * Moves a request out of the spool.
   *
   * @param path its file
   * @param name the file's name
   * @param reason a sentence
   * @throws errors of node:fs; ERR_UNSAFE_PATH
   */
  put(path: string, name: string, reason: string): void {
    makeOwnDirectory(this.directory, 'kept requests that cannot be settled');
    const to = join(this.directory, name);
    renameSync(path, to);
    if (statSync(to).isFile() && statSync(to).size > LARGEST) truncateSync(to, LARGEST);
    writeFileSync(`${to}${SUFFIX}`, `${reason}\n`, { mode: 0o600 });
    this.#makeRoom();
  }

  /** Names sort by time. */
  #makeRoom(): void {
    const newestFirst = readdirSync(this.directory)
      .filter((name) => !name.endsWith(SUFFIX))
      .sort()
      .reverse();
    let size = 0;
    for (const [at, name] of newestFirst.entries()) {
      const path = join(this.directory, name);
      size += statSync(path).size;
      if (at === 0 || (at < MOST && size <= LARGEST)) continue;
      rmSync(path, { recursive: true, force: true });
      rmSync(`${path}${SUFFIX}`, { force: true });
    }
  }
}
