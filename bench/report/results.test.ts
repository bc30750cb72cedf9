import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Figure, Results } from './figure.ts';
import { headlines, readResults, resultFiles, writeResults } from './results.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

const FASTER: Figure = {
  what: 'ADD',
  unit: 'ms',
  ours: 12,
  peer: 48,
  peerName: 'plugins of <others> & co',
  headline: 'ADD | of a pod',
};
const COUNTED: Figure = { what: 'rules', unit: '', ours: 24, peer: undefined, peerName: '' };

function run(...figures: Figure[]): Results {
  return {
    date: '2026-01-02',
    commit: 'abc',
    machine: '2 x processor',
    versions: [['Linux', '6.1']],
    load: 0.1,
    minutes: 12,
    reports: [{ benchmark: 'cni', figures }],
  };
}

describe('what is written of a run', () => {
  const files = resultFiles(run(FASTER, COUNTED), README);

  it('is a page, the table of the README, and a picture for each headline', () => {
    expect([...files.keys()]).toEqual(['bench/results/add-of-a-pod.svg', 'bench/RESULTS.md', 'README.md']);
    expect(files.get('README.md')).toContain(
      '| ADD \\| of a pod | 12.0 ms | 48.0 ms: plugins of <others> & co | 0.250 x |',
    );
    expect(files.get('bench/RESULTS.md')).toContain('| rules | 24.0 |  | no peer |  |  |');
    expect(files.get('bench/RESULTS.md')).toContain('](results/add-of-a-pod.svg)');
  });

  it('replaces the table of the run before', () => {
    expect(resultFiles(run(FASTER), files.get('README.md')!).get('README.md')).toBe(files.get('README.md'));
  });

  it('draws both bars on one scale', () => {
    const svg = files.get('bench/results/add-of-a-pod.svg')!;
    const widths = [...svg.matchAll(/<rect class="\w+" .*? width="(\d+)"/g)].map(([, width]) => Number(width));
    expect(widths[0]! / widths[1]!).toBe(12 / 48);
    expect(svg).toContain('plugins of &lt;others&gt; &amp; co');
  });

  it('says so when two headlines would write one picture, or the README has no place for the table', () => {
    expect(() => resultFiles(run(FASTER, FASTER), README)).toThrow('Two headline figures have the same name');
    expect(() => resultFiles(run(FASTER), '# nodeplane\n')).toThrow('in README.md');
  });
});

describe('the run that is kept', () => {
  it('is what RESULTS.md, the README and the pictures show: nobody has edited them by hand', () => {
    const results = readResults(ROOT);
    if (process.env.UPDATE_DOCS !== undefined) writeResults(ROOT, results);
    expect(headlines(results).length).toBeGreaterThan(5);
    for (const [path, content] of resultFiles(results, readFileSync(join(ROOT, 'README.md'), 'utf8'))) {
      expect(readFileSync(join(ROOT, path), 'utf8'), path).toBe(content);
    }
  });
});
