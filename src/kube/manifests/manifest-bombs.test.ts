import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { KINDS } from '../objects/kinds.ts';
import { readManifest } from './manifest-file.ts';
import { ManifestFolder } from './manifest-folder.ts';
import type { ManifestKinds } from './manifest-kinds.ts';

const kinds: ManifestKinds = new Map(Object.entries(KINDS));

// Each of these kept the process busy for minutes, or without end. The bounds are those of a hang.
const SOON = 15_000;

/** Mappings a0, a1, ...: each merges the one before ten times. */
function mergeBomb(levels: number): string {
  const aliases = (level: number) => Array(10).fill(`*a${level}`).join(', ');
  const lines = Array.from({ length: levels }, (_, level) => `a${level + 1}: &a${level + 1} {<<: [${aliases(level)}]}`);
  return ['a0: &a0 {x: 1}', ...lines, 'kind: Pod', ''].join('\n');
}

const messages = (text: string, name = 'x.yaml') =>
  readManifest(name, text, kinds).problems.map(({ where, message }) => `${where} ${message}`);

it(
  'refuses merge keys that multiply, and reads those that do not',
  () => {
    expect(messages(mergeBomb(9))).toEqual([
      'x.yaml:7 Cannot be parsed: Its merge keys ("<<") add up to more than 1000000 entries',
    ]);
    expect(messages(mergeBomb(2))).toEqual([]);
    expect(messages('kind: Pod\na: &a\n  <<: *a\n')).toHaveLength(1);
  },
  SOON,
);

it(
  'looks through a long mapping once',
  () => {
    const keys = Array.from({ length: 100_000 }, (_, key) => `k${key}: 1\n`).join('');
    expect(messages(`kind: Pod\n${keys}`)).toEqual([]);
    expect(messages(`kind: Pod\n${'a: 1\n'.repeat(100_000)}`)).toEqual([
      'x.yaml:3 Cannot be parsed: Map keys must be unique; keep one of the two, or put "---" between two objects',
    ]);
  },
  SOON,
);

it(
  'names the first of many objects that are defined again, and counts the others',
  () => {
    const service =
      '{apiVersion: v1, kind: Service, metadata: {name: q}, spec: {clusterIP: 10.96.7.7, ports: [{port: 1}]}}';
    const text = (count: number) =>
      `apiVersion: v1\nkind: List\nx: &s ${service}\nitems: [${Array(count).fill('*s').join(', ')}]\n`;
    const found = messages(text(5000));
    expect(found).toHaveLength(21);
    expect(found.at(-1)).toBe('x.yaml 4979 more objects are defined twice in this file');
    expect(messages(text(20_000))).toEqual(['x.yaml:4 Cannot be parsed: It has more than 10000 aliases']);
  },
  SOON,
);

it(
  'names the first of many mistakes, counts the others, and knows all objects that cannot be used',
  () => {
    const services = Array.from({ length: 1000 }, (_, index) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: `s${index}` },
      spec: { clusterIP: '10.96.0.300', ports: [{ port: index === 999 ? 80 : 0 }] },
    }));
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: services });
    const { problems, refused } = readManifest('x.json', text, kinds);
    expect(problems).toHaveLength(21);
    expect(problems.at(-1)).toEqual({
      where: 'x.json',
      message: 'There are 1979 more mistakes than those told; 1000 objects in this file cannot be used',
      others: 990,
    });
    expect(refused).toHaveLength(1000);
    expect(refused.at(-1)).toBe('Service default/s999');

    expect(messages('---\n[\n'.repeat(100))).toHaveLength(21);
  },
  SOON,
);

it('quotes no more of a file than a line of a log holds', () => {
  const long = 'x'.repeat(100_000);
  const service = `apiVersion: v1\nkind: Service\nmetadata: {name: ${long}, labels: {${long}: 1}}\n`;
  for (const text of [`a: *${long}`, service, `kind: Service${long}\napiVersion: v1\n`]) {
    for (const problem of readManifest('x.yaml', text, kinds).problems) {
      expect(JSON.stringify(problem).length).toBeLessThan(2000);
    }
  }
  // The parser quotes all of it.
  expect(messages(`a: *${long}`)).toEqual([expect.stringMatching(/^x\.yaml:1 Cannot be parsed: .*xxx…$/)]);
});

it('reads neither YAML nor files without measure, and says so', () => {
  expect(messages(`# ${'x'.repeat(5_000_000)}`)).toEqual([
    'x.yaml:1 Cannot be parsed: it has 5000002 characters of YAML, at most 4194304 are read; split it, or write JSON',
  ]);
  expect(messages(`{"a": "${'x'.repeat(5_000_000)}`, 'x.json')).toEqual([
    expect.stringMatching(/^x\.json:1 Cannot be parsed: .*JSON/),
  ]);

  const folder = mkdtempSync(join(tmpdir(), 'nodeplane-manifests-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'huge.json'), '');
  truncateSync(join(folder, 'huge.json'), 100_000_000);
  const { files } = new ManifestFolder(folder, kinds, new FakeClock()).changes(new Set());
  expect(files.get('huge.json')?.problems).toEqual([
    { where: 'huge.json', message: 'Cannot be read: it has 100000000 bytes, at most 67108864 are read' },
  ]);
});
