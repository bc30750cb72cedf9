import { type ComparedPart, type Drift, errorText } from '../../core/index.ts';

/** What the JSON is of. Fields may be added to it; the number changes when one goes or means something else. */
export const DIFF_SCHEMA = 'nodeplane/diff/v1';

/** Differences of one part that are told; all are counted. */
const MOST_DIFFERENCES = 500;

/** What is meant to be in the kernel against what it holds. */
export interface DiffReport {
  readonly schema: typeof DIFF_SCHEMA;
  readonly node: string;
  readonly mode: string;
  /** RFC 3339 */
  readonly takenAt: string;
  readonly parts: readonly PartReport[];
}

export interface PartReport {
  /** `Services IPv4` */
  readonly name: string;
  /** `unknown`: it could not be compared, or repaired; `reason` says why. */
  readonly verdict: 'equal' | 'differs' | 'unknown';
  readonly reason: string | null;
  /** How many differences there are, */
  readonly total: number;
  /** and as many of them as a limit allows. */
  readonly differences: readonly Drift[];
  /** Those that were there before the repair that was asked for; empty when none was, or there was nothing to repair. */
  readonly repaired: readonly Drift[];
  readonly repairedTotal: number;
}

/** Compares one part, and repairs it if that is asked for and something differs. Never rejects. */
export async function reportPart(part: ComparedPart, { repair }: { readonly repair: boolean }): Promise<PartReport> {
  const { name } = part;
  let before: readonly Drift[] | undefined;
  const report = (after: readonly Drift[], reason: string | null): PartReport => {
    const verdict = reason !== null ? 'unknown' : after.length > 0 ? 'differs' : 'equal';
    const left = new Set(after.map(({ object }) => object));
    const repaired = repair && reason === null ? (before ?? []).filter(({ object }) => !left.has(object)) : [];
    return {
      name,
      verdict,
      reason,
      total: after.length,
      differences: after.slice(0, MOST_DIFFERENCES),
      repaired: repaired.slice(0, MOST_DIFFERENCES),
      repairedTotal: repaired.length,
    };
  };
  try {
    // What cannot be compared, for example because the last sync failed, is worth a repair all the same.
    before = repair ? await part.compare().catch(() => undefined) : await part.compare();
    if (before && (!repair || before.length === 0)) return report(before, null);
    await part.repair();
    return report(await part.compare(), null);
  } catch (error) {
    return report(before ?? [], errorText(error));
  }
}
