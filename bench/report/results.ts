import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chart, chartName } from './chart.ts';
import type { Figure, Results } from './figure.ts';
import { headlineTable, resultsPage } from './markdown.ts';

/** Where the README's table of headline figures begins and ends. */
const MARKS = ['<!-- headline figures, written by `npm run bench` -->', '<!-- end of headline figures -->'] as const;

/** The figures of a run that the README shows, in its order. */
export function headlines(results: Results): Figure[] {
  return results.reports.flatMap(({ figures }) => figures).filter(({ headline }) => headline !== undefined);
}

/**
 * Every file that is made of a run, but the run itself.
 *
 * @param readme the README as it is
 * @returns contents by path below the project's folder
 * @throws when the README has not the two marks, or two headlines the same name
 */
export function resultFiles(results: Results, readme: string): Map<string, string> {
  const figures = headlines(results);
  const files = new Map(figures.map((figure) => [join('bench/results', chartName(figure)), chart(figure)]));
  if (files.size < figures.length) throw new Error('Two headline figures have the same name');
  files.set('bench/RESULTS.md', resultsPage(results, figures));
  const [start, end] = MARKS.map((mark) => readme.indexOf(mark)) as [number, number];
  if (start < 0 || end < start) throw new Error(`Cannot find "${MARKS[0]}" and "${MARKS[1]}" in README.md`);
  const table = `\n\n${headlineTable(figures)}\n\n`;
  files.set('README.md', `${readme.slice(0, start + MARKS[0].length)}${table}${readme.slice(end)}`);
  return files;
}

/** Writes a run and all that is made of it; charts of figures that are no headlines any more are removed. */
export function writeResults(root: string, results: Results): void {
  const folder = join(root, 'bench/results');
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) if (name.endsWith('.svg')) rmSync(join(folder, name));
  writeFileSync(join(folder, 'results.json'), `${JSON.stringify(results, null, 1)}\n`);
  const files = resultFiles(results, readFileSync(join(root, 'README.md'), 'utf8'));
  for (const [path, content] of files) writeFileSync(join(root, path), content);
}

/** @throws when there is no run yet */
export function readResults(root: string): Results {
  return JSON.parse(readFileSync(join(root, 'bench/results/results.json'), 'utf8')) as Results;
}
