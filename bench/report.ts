/** What a figure has to reach. */
export interface Target {
  /** Whether the ratio ours/peer is held against it, or our own figure: a count, or bytes, which no machine changes. */
  readonly of: 'ratio' | 'ours';
  readonly atMost?: number;
  readonly atLeast?: number;
  /** Printed beside it: `goal 0.35`. */
  readonly note?: string;
}

/** One figure of a benchmark: ours and a named peer's, taken in the same run. */
export interface Figure {
  readonly what: string;
  readonly unit: string;
  readonly ours: number;
  /** Undefined: there is nothing to compare with, and `peerName` is not read. */
  readonly peer: number | undefined;
  /** Who the peer is: `upstream's layout`, `iptables-restore alone`. */
  readonly peerName: string;
  /** How far the ratio strayed within this run (see `inTurns`). @default 0, for what is counted */
  readonly spread?: number;
  /** @default nothing is promised */
  readonly target?: Target;
}

/** A target for the ratio ours/peer. */
export function ratioAtMost(atMost: number, note?: string): Target {
  return { of: 'ratio', atMost, ...(note !== undefined && { note }) };
}

/** A target for the ratio ours/peer where more is better: a rate. */
export function ratioAtLeast(atLeast: number, note?: string): Target {
  return { of: 'ratio', atLeast, ...(note !== undefined && { note }) };
}

/** A target for our own figure. */
export function oursAtMost(atMost: number, note?: string): Target {
  return { of: 'ours', atMost, ...(note !== undefined && { note }) };
}

/** For a target that nobody asked for: what is so today, with margin, shall stay so. */
export const HOLDS_THE_LINE = 'holds the line';

/**
 * Compares two series of samples, taken by turns so that what disturbs the machine disturbs both.
 *
 * @param statistic of all samples of a series, and of each piece of it: `median`
 * @returns both figures, and as spread half the distance between the quartiles of the ratios that eight pieces of the run
 *   give, in time's order, or as many as there are samples
 */
export function inTurns(
  ours: readonly number[],
  peer: readonly number[],
  statistic: (values: readonly number[]) => number = median,
): { readonly ours: number; readonly peer: number; readonly spread: number } {
  const pieces = Math.min(8, ours.length, peer.length);
  const piece = (values: readonly number[], n: number) =>
    statistic(values.slice(Math.floor((n * values.length) / pieces), Math.floor(((n + 1) * values.length) / pieces)));
  const ratios = Array.from({ length: pieces }, (_, n) => piece(ours, n) / piece(peer, n));
  const spread = (percentile(ratios, 75) - percentile(ratios, 25)) / 2;
  return { ours: statistic(ours), peer: statistic(peer), spread };
}

/** Whether a figure misses its target by more than it strayed within the run. */
export function isMissed({ ours, peer, spread = 0, target }: Figure): boolean {
  if (!target) return false;
  const [value, noise] = target.of === 'ratio' ? [ours / peer!, spread] : [ours, 0];
  const { atMost = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY } = target;
  // Written so that what is not a number misses.
  return !(value - noise <= atMost && value + noise >= atLeast);
}

/**
 * Prints a readable table, then one JSON line for machines. The ratio ours/peer is what counts: machines differ. A missed
 * target makes the exit status of the process 1.
 */
export function report(benchmark: string, figures: readonly Figure[]): void {
  const rows = figures.map((figure) => {
    const { what, unit, ours, peer, peerName, spread } = figure;
    const ratio = peer === undefined ? '' : `${format(ours / peer)} x${spread ? ` ±${format(spread)}` : ''}`;
    return [
      what,
      `${format(ours)} ${unit}`,
      peer === undefined ? '' : `${format(peer)} ${unit}`,
      peer === undefined ? 'no peer' : peerName,
      ratio,
      targetText(figure),
    ];
  });
  const header = [benchmark, 'nodeplane', 'peer', '', 'ratio', 'target'];
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map((row) => row[column]!.length)));
  for (const row of [header, ...rows]) {
    process.stdout.write(
      `${row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd()}\n`,
    );
  }
  const forMachines = figures.map((figure) => ({
    ...figure,
    ...(figure.peer !== undefined && { ratio: figure.ours / figure.peer }),
    missed: isMissed(figure),
  }));
  process.stdout.write(`${JSON.stringify({ benchmark, node: process.version, figures: forMachines })}\n`);
  if (figures.some(isMissed)) process.exitCode = 1;
}

function targetText(figure: Figure): string {
  const { target, unit } = figure;
  if (!target) return '';
  const { of, atMost, atLeast, note } = target;
  const limit = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`;
  const words = [`${limit} ${of === 'ratio' ? 'x' : unit}`.trimEnd(), note].filter((word) => word !== undefined);
  return `${words.join(', ')}${isMissed(figure) ? ' MISSED' : ''}`;
}

/** The middle value: a noisy machine spoils the mean, not the median. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The value that `percent` (0 to 100) of all values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))]!;
}

function format(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
