import { isNotFound } from '../../core/index.ts';
import type { NftChange, NftElement, NftElements, NftReader, NftRuleset } from '../../netlink/index.ts';
import { IP_FAMILIES, POD_TABLE, type PodSetKind, podSet } from './pod-table.ts';

/** How often a change is planned again because somebody else changed the same elements meanwhile. */
const ATTEMPTS = 5;

/** Whether the table is there: one request, after which all others can be saved. */
export function hasPodTable(ruleset: NftReader): boolean {
  return ruleset.listTables(POD_TABLE.family).some(({ name }) => name === POD_TABLE.name);
}

/** The elements of all sets of these kinds, those of a set that is missing being none. */
export function listPodElements(ruleset: NftReader, kinds: readonly PodSetKind[]): NftElements[] {
  return kinds.flatMap((kind) =>
    IP_FAMILIES.map((family) => {
      const { table, name, family: tableFamily } = podSet(kind, family);
      return { kind: 'elements', family: tableFamily, table, set: name, elements: elementsOrNone(ruleset, name) };
    }),
  );
}

/**
 * Deletes the elements of sets of these kinds whose comment `isTheirs`.
 *
 * @returns what was deleted, as it was
 */
export function deletePodElements(
  ruleset: NftRuleset,
  kinds: readonly PodSetKind[],
  isTheirs: (comment: string | undefined) => boolean,
): NftElements[] {
  return retried(isNotFound, () => {
    const found = selectElements(listPodElements(ruleset, kinds), isTheirs);
    if (found.length > 0) ruleset.commit(deletions(found));
    return found;
  });
}

/** Of each set the elements whose comment `isTheirs`; sets without any are left out. */
export function selectElements(
  sets: readonly NftElements[],
  isTheirs: (comment: string | undefined) => boolean,
): NftElements[] {
  return sets
    .map((set) => ({ ...set, elements: set.elements.filter(({ comment }) => isTheirs(comment)) }))
    .filter(({ elements }) => elements.length > 0);
}

export function deletions(sets: readonly NftElements[]): NftChange[] {
  return sets.map((object) => ({ operation: 'delete', object }));
}

/** Runs `fn`, again when it fails with an error of the kind that a change by somebody else in between explains. */
export function retried<T>(isExplained: (error: unknown) => boolean, fn: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return fn();
    } catch (error) {
      if (attempt >= ATTEMPTS || !isExplained(error)) throw error;
    }
  }
}

function elementsOrNone(ruleset: NftReader, name: string): NftElement[] {
  try {
    return ruleset.listElements({ kind: 'set', family: POD_TABLE.family, table: POD_TABLE.name, name });
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}
