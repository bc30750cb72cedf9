import type { Screen } from './screen.ts';

/** One row of a table with bars. */
export interface Bar {
  readonly label: string;
  readonly detail: string;
  readonly count: number;
  /** @default the share of the total in percent */
  readonly note?: string;
}

const BAR_WIDTH = 44;
/** Blocks of one to seven eighths of a column. */
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** Draws one bar per row, the longest over the whole width. */
export function drawBars(screen: Screen, bars: readonly Bar[]): void {
  const longest = Math.max(1, ...bars.map(({ count }) => count));
  const total = Math.max(
    1,
    bars.reduce((sum, { count }) => sum + count, 0),
  );
  const widest = (pick: (bar: Bar) => string) => Math.max(...bars.map((bar) => pick(bar).length));
  const [labelWidth, detailWidth, countWidth] = [
    widest(({ label }) => label),
    widest(({ detail }) => detail),
    widest(({ count }) => String(count)),
  ];
  for (const { label, detail, count, note } of bars) {
    const bar = barOf(count / longest).padEnd(BAR_WIDTH);
    const share = note ?? `${Math.round((count / total) * 100)} %`;
    screen.line(
      `${label.padEnd(labelWidth)}  ${screen.paint('dim', detail.padEnd(detailWidth))}  ` +
        `${screen.paint('cyan', bar)} ${String(count).padStart(countWidth)}  ${screen.paint('dim', share.padStart(4))}`,
    );
  }
}

function barOf(share: number): string {
  const eighths = Math.round(share * BAR_WIDTH * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]!;
}
