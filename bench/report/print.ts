import { type Figure, isMissed, type Report } from './figure.ts';
import { cells } from './text.ts';

const told: Report[] = [];

/** What this process has reported so far, in that order. */
export function reports(): readonly Report[] {
  return told;
}

/**
 * Prints a readable table, then one JSON line for machines. The ratio ours/peer is what counts: machines differ. A missed
 * target makes the exit status of the process 1.
 */
export function report(benchmark: string, figures: readonly Figure[]): void {
  told.push({ benchmark, figures });
  const table = [[benchmark, 'nodeplane', 'peer', '', 'ratio', 'target'], ...figures.map(cells)];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  for (const row of table) {
    const padded = row.map((cell, column) => cell.padEnd(widths[column]!));
    process.stdout.write(`${padded.join('  ').trimEnd()}\n`);
  }
  const forMachines = figures.map((figure) => ({
    ...figure,
    ...(figure.peer !== undefined && { ratio: figure.ours / figure.peer }),
    missed: isMissed(figure),
  }));
  process.stdout.write(`${JSON.stringify({ benchmark, node: process.version, figures: forMachines })}\n`);
  if (figures.some(isMissed)) process.exitCode = 1;
}
