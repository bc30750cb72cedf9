import { ifPresent, isNotFound } from '../../../core/index.ts';
import type {
  NftChange,
  NftElement,
  NftElements,
  NftReader,
  NftRuleset,
  SetRef,
  TableRef,
} from '../../../netlink/nftables/index.ts';

/** How often a change is planned again because somebody else changed the same elements meanwhile. */
const ATTEMPTS = 5;

/** Whether a table is there: one request, after which all others can be saved. */
export function hasTable(ruleset: NftReader, { family, name }: TableRef): boolean {
  return ruleset.listTables(family).some((table) => table.name === name);
}

/** The elements of these sets, those of a set that is missing being none. */
export function listPodElements(ruleset: NftReader, sets: readonly SetRef[]): NftElements[] {
  return sets.map((set) => elementsIn(set, ifPresent(() => ruleset.listElements(set)) ?? []));
}

/** Elements of a set. */
export function elementsIn({ family, table, name }: SetRef, elements: readonly NftElement[]): NftElements {
  return { kind: 'elements', family, table, set: name, elements };
}

/** What the kernel has under the key of a set's only element. */
export function presentOf(ruleset: NftReader, set: NftElements): NftElements[] {
  const { family, table, set: name, elements } = set;
  const found = ruleset.getElement({ kind: 'set', family, table, name }, elements[0]!.key);
  return found ? [{ ...set, elements: [found] }] : [];
}

/**
 * Deletes the elements of these sets whose comment `isTheirs`.
 *
 * @returns what was deleted, as it was
 */
export function deletePodElements(
  ruleset: NftRuleset,
  sets: readonly SetRef[],
  isTheirs: (comment: string | undefined) => boolean,
): NftElements[] {
  return retried(isNotFound, () => {
    const found = selectElements(listPodElements(ruleset, sets), isTheirs);
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

/** The changes that remove these elements; ENOENT for one that is not there. */
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
