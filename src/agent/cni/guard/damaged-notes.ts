import type { Drift } from '../../../core/index.ts';
import { damagedNotes } from '../../../ipam/index.ts';
import type { Logger } from '../../logger.ts';

const REMEDY =
  'delete the pod that has this link, so that it is made anew; when there is no such link, remove the file';

/** Notes about pods that cannot be read, as differences that no repair mends. Throws ERR_IPAM_STORE. */
export function damagedNoteDrifts(dataDirs: readonly string[]): Drift[] {
  return dataDirs.flatMap(damagedNotes).map(({ name, path }) => ({
    object: `note "${path}" about link "${name}"`,
    difference: 'changed',
    ours: ['what its ADD wrote'],
    theirs: ['cannot be read', REMEDY],
  }));
}

/** Tells the log of notes about pods that cannot be read, each once while it lasts. */
export class DamagedNoteLog {
  readonly #logger: Logger;
  #told: ReadonlySet<string> = new Set();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Throws ERR_IPAM_STORE. */
  look(dataDirs: readonly string[]): void {
    const damaged = dataDirs.flatMap(damagedNotes);
    for (const { name: link, path } of damaged) {
      if (this.#told.has(path)) continue;
      this.#logger.warn(
        { path, link, remedy: REMEDY },
        'CNI: the note about a pod cannot be read; nobody looks after its rules and its interface',
      );
    }
    this.#told = new Set(damaged.map(({ path }) => path));
  }
}
