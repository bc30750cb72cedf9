/** One figure of a benchmark: ours and a named peer's, taken in the same run. */
export interface Figure {
  readonly what: string;
  readonly unit: string;
  readonly ours: number;
  readonly peer: number;
  /** Who the peer is: `upstream's layout`, `iptables-restore alone`. */
  readonly peerName: string;
  /** What is to be reached, in words: `at most 2 ms`. @default nothing is promised */
  readonly target?: string;
}

/** Prints a readable table, then one JSON line for machines. The ratio ours/peer is what counts: machines differ. */
export function report(benchmark: string, figures: readonly Figure[]): void {
  const rows = figures.map(({ what, unit, ours, peer, peerName, target = '' }) => [
    what,
    `${format(ours)} ${unit}`,
    `${format(peer)} ${unit}`,
    peerName,
    `${format(ours / peer)} x`,
    target,
  ]);
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
  const ratios = figures.map((figure) => ({ ...figure, ratio: figure.ours / figure.peer }));
  process.stdout.write(`${JSON.stringify({ benchmark, node: process.version, figures: ratios })}\n`);
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
