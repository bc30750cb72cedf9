import { type Drift, driftLines } from '../../../core/index.ts';
import { sameRules } from '../chain-set.ts';
import type { SavedTable } from '../save.ts';

/** A rule that is to be in a chain of others. */
interface Jump {
  readonly chain: string;
  readonly rule: string;
}

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
  if (wanted && present && sameRules(present, wanted)) return undefined;
  const lines = driftLines(textsOf(name, wanted ?? []), textsOf(name, present ?? []));
  const difference = !present ? 'missing' : wanted ? 'changed' : 'unexpected';
  return { object: `${table} chain ${name}`, difference, ...lines };
}

/** A jump from a chain of others that is not there. */
export function missingJump(table: string, { chain, rule }: Jump, to: string | undefined): Drift {
  return { object: `jump ${table} ${chain} -> ${to}`, difference: 'missing', ours: textsOf(chain, [rule]), theirs: [] };
}

/** Each copy of a jump in a chain of others beyond the one that is to be there. */
export function surplusJumps<T extends Jump>(jumps: readonly T[], saved: SavedTable): T[] {
  return jumps.flatMap((jump) => {
    const copies = saved.get(jump.chain)?.rules.filter((rule) => rule === jump.rule) ?? [];
    return copies.slice(1).map(() => jump);
  });
}

/** A copy of a jump that is there already. */
export function surplusJump(table: string, { chain, rule }: Jump, to: string | undefined): Drift {
  const object = `jump ${table} ${chain} -> ${to}`;
  return { object, difference: 'unexpected', ours: [], theirs: textsOf(chain, [rule]) };
}

function textsOf(chain: string, rules: readonly string[]): string[] {
  return rules.map((rule) => `-A ${chain} ${rule}`);
}
