import { objectKey } from '../objects/types.ts';
import type { SourceProblem } from '../source.ts';
import type { ManifestObject } from './manifest-file.ts';

/** Manifests by file name. */
export type ManifestFiles = ReadonlyMap<string, readonly ManifestObject[]>;

export interface Settlement {
  /** The files whose new content takes force. */
  readonly accepted: ManifestFiles;
  /** The files that keep their old content, with the reasons. */
  readonly refused: ReadonlyMap<string, readonly SourceProblem[]>;
}

/**
 * Decides which new file contents take force so that no object is defined by two files.
 *
 * `waiting` holds the new contents, `ownerOf` names the file whose content *in force* defines an object. All contents that
 * fit together are accepted at once: an object may move, or two objects change places, between files. Where two files
 * define the same object, the one that has it in force keeps it, else the file first in name order has it; the other file
 * is refused as a whole, and what it has in force counts again.
 */
export function settleConflicts(
  waiting: ManifestFiles,
  ownerOf: (objectKey: string) => string | undefined,
): Settlement {
  const accepted = new Map([...waiting].sort(([a], [b]) => (a < b ? -1 : 1)));
  const refused = new Map<string, readonly SourceProblem[]>();
  for (;;) {
    // Conflicts among newcomers are looked at last: one side may have to go anyway.
    let losers = conflictsWithOwners(accepted, ownerOf);
    if (losers.size === 0) losers = conflictsAmong(accepted, ownerOf);
    if (losers.size === 0) return { accepted, refused };
    for (const [file, problems] of losers) {
      accepted.delete(file);
      refused.set(file, problems);
    }
  }
}

type OwnerOf = (objectKey: string) => string | undefined;

/** Objects that a file outside `candidates` has in force. */
function conflictsWithOwners(candidates: ManifestFiles, ownerOf: OwnerOf): Map<string, SourceProblem[]> {
  const losers = new Map<string, SourceProblem[]>();
  for (const [file, objects] of candidates) {
    for (const item of objects) {
      const owner = ownerOf(objectKey(item.object));
      if (owner === undefined || owner === file || candidates.has(owner)) continue;
      addTo(losers, file, conflict(file, item, `"${owner}"`));
    }
  }
  return losers;
}

/** Objects that two of the candidates define. */
function conflictsAmong(candidates: ManifestFiles, ownerOf: OwnerOf): Map<string, SourceProblem[]> {
  const losers = new Map<string, SourceProblem[]>();
  const claims = new Map<string, { readonly file: string; readonly item: ManifestObject }>();
  for (const [file, objects] of candidates) {
    for (const item of objects) {
      const key = objectKey(item.object);
      const earlier = claims.get(key);
      const claim = { file, item };
      const winner = !earlier || ownerOf(key) === file ? claim : earlier;
      claims.set(key, winner);
      const loser = winner === claim ? earlier : claim;
      if (!loser) continue;
      addTo(losers, loser.file, conflict(loser.file, loser.item, `"${winner.file}", line ${winner.item.line()}`));
    }
  }
  return losers;
}

function conflict(file: string, item: ManifestObject, other: string): SourceProblem {
  return {
    where: `${file}:${item.line()}`,
    object: objectKey(item.object),
    message: `Already defined in ${other}; remove one of the two (this file's earlier content stays in force)`,
  };
}

function addTo(losers: Map<string, SourceProblem[]>, file: string, problem: SourceProblem): void {
  const problems = losers.get(file);
  if (problems) problems.push(problem);
  else losers.set(file, [problem]);
}
