import { type Drift, driftLines, sameTexts } from '../../../core/index.ts';
import type { ForeignRule } from '../restore.ts';
import { type SavedTable, targetOf } from '../save.ts';

/**
 * In what a chain differs from the one that is meant, rules as text; undefined: in nothing.
 *
 * @param wanted undefined: there is to be none
 * @param present undefined: there is none
 */
export function chainDrift(
  table: string,
  name: string,
  wanted: readonly string[] | undefined,
  present: readonly string[] | undefined,
): Drift | undefined {
  if (wanted && present && sameTexts(present, wanted)) return undefined;
  const lines = driftLines(textsOf(name, wanted ?? []), textsOf(name, present ?? []));
  const difference = !present ? 'missing' : wanted ? 'changed' : 'unexpected';
  return { object: `${table} chain ${name}`, difference, ...lines };
}

/** In what the jumps of a table from chains of others differ from those wanted, each of which is to be there once. */
export function jumpDrift(table: string, jumps: readonly ForeignRule[], saved: SavedTable): Drift[] {
  const drift: Drift[] = [];
  const objectOf = ({ chain, rule }: ForeignRule) => `jump ${table} ${chain} -> ${targetOf(rule)}`;
  for (const jump of missingJumps(jumps, saved)) {
    drift.push({ object: objectOf(jump), difference: 'missing', ours: textsOf(jump.chain, [jump.rule]), theirs: [] });
  }
  for (const jump of surplusJumps(jumps, saved)) {
    drift.push({
      object: objectOf(jump),
      difference: 'unexpected',
      ours: [],
      theirs: textsOf(jump.chain, [jump.rule]),
    });
  }
  return drift;
}

/** Those of a table's jumps that are not there, in their order. */
export function missingJumps<T extends ForeignRule>(jumps: readonly T[], saved: SavedTable): T[] {
  return jumps.filter(({ chain, rule }) => !saved.get(chain)?.rules.includes(rule));
}

/** Each copy of a jump beyond the one that is to be there. */
export function surplusJumps<T extends ForeignRule>(jumps: readonly T[], saved: SavedTable): T[] {
  return jumps.flatMap((jump) => {
    const copies = saved.get(jump.chain)?.rules.filter((rule) => rule === jump.rule) ?? [];
    return copies.slice(1).map(() => jump);
  });
}

function textsOf(chain: string, rules: readonly string[]): string[] {
  return rules.map((rule) => `-A ${chain} ${rule}`);
}
