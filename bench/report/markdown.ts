import { chartName } from './chart.ts';
import type { Figure, Results } from './figure.ts';
import { cells, quantity, ratioText } from './text.ts';

/**
 * bench/RESULTS.md: what was run where, the headline figures as pictures, and each table of the run.
 *
 * @param headlines the figures of the run that are shown as pictures
 */
export function resultsPage(results: Results, headlines: readonly Figure[]): string {
  const { date, commit, machine, versions, load, minutes } = results;
  const facts: [string, string][] = [
    ['date, commit', [date, commit].filter(Boolean).join(', ')],
    ['machine', machine],
    ...versions.map(([name, version]): [string, string] => [name, version]),
    ['load before, duration', `${load.toFixed(2)}, ${minutes.toFixed(0)} minutes`],
  ];
  return `${[
    '# What the benchmarks measured',
    'Written by `npm run bench`; edits are lost. Both columns of a row are medians taken by turns in one run, so the ratio is what can\nbe compared: machines differ. `±` is how far it strayed within the run. What the benchmarks are is said in\n[docs/testing.md](../docs/testing.md#benchmarks).',
    table(['', ''], facts),
    ...headlines.map((figure) => `![${cellText(captionOf(figure))}](results/${chartName(figure)})`),
    ...results.reports.flatMap(({ benchmark, figures }) => [
      `## ${cellText(benchmark)}`,
      table(['', 'nodeplane', 'peer', 'who that is', 'ratio', 'target'], figures.map(cells)),
    ]),
  ].join('\n\n')}\n`;
}

/** The README's table: one line for each headline. */
export function headlineTable(headlines: readonly Figure[]): string {
  return table(
    ['', 'nodeplane', 'beside', 'ratio'],
    headlines.map((figure) => {
      const { headline, ours, peer, peerName, unit } = figure;
      const beside = peer === undefined ? '' : `${quantity(peer, unit)}: ${peerName}`;
      return [headline!, quantity(ours, unit), beside, ratioText(figure)];
    }),
  );
}

/** A headline in one sentence, for those who do not see the picture. */
function captionOf({ headline, ours, peer, peerName, unit }: Figure): string {
  const own = `${headline}: ${quantity(ours, unit)}`;
  return peer === undefined ? own : `${own}, ${peerName} ${quantity(peer, unit)}`;
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (row: readonly string[]) => `| ${row.map(cellText).join(' | ')} |`;
  return [line(header), `|${'---|'.repeat(header.length)}`, ...rows.map(line)].join('\n');
}

function cellText(text: string): string {
  return text.replaceAll('|', '\\|');
}
