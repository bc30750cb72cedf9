import { type Drift, plainText } from '../../core/index.ts';
import type { DiffReport, PartReport } from './report.ts';

const SIGNS: Readonly<Record<Drift['difference'], string>> = { missing: '+', unexpected: '-', changed: '~' };
const LEGEND = '+ is meant and not in the kernel, - is in the kernel and not meant, ~ is in it otherwise than meant';

/** As a plan: what would have to happen so that the kernel holds what is meant. Every name is text on the terminal. */
export function diffText({ node, mode, takenAt, parts }: DiffReport): string {
  const differs = parts.some(({ total, repairedTotal }) => total + repairedTotal > 0);
  const lines = [
    `${node}: the kernel against what is meant, mode ${mode}, ${takenAt}`,
    ...(differs ? [LEGEND] : []),
    ...parts.flatMap(partLines),
  ];
  return lines.map((line) => `${plainText(line)}\n`).join('');
}

function partLines(part: PartReport): string[] {
  const { name, verdict, reason, total, differences, repaired, repairedTotal } = part;
  const done = repairedTotal === 0 ? '' : `, ${countText(repairedTotal)} repaired`;
  return [
    `${name}: ${verdict === 'unknown' ? `cannot tell: ${reason}` : `${total === 0 ? 'equal' : countText(total)}${done}`}`,
    ...differences.flatMap((drift) => driftText(drift, SIGNS[drift.difference])),
    ...more(total - differences.length),
    ...repaired.flatMap((drift) => driftText(drift, '✓')),
    ...more(repairedTotal - repaired.length),
  ];
}

function driftText({ object, ours = [], theirs = [] }: Drift, sign: string): string[] {
  return [`  ${sign} ${object}`, ...theirs.map((line) => `      - ${line}`), ...ours.map((line) => `      + ${line}`)];
}

function more(count: number): string[] {
  return count > 0 ? [`  and ${count} more`] : [];
}

function countText(count: number): string {
  return `${count} difference${count === 1 ? '' : 's'}`;
}
