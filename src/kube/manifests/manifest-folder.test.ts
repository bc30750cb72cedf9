import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ManifestFolder } from './manifest-folder.ts';

let path: string;

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'nodeplane-manifests-'));
});

afterEach(() => rmSync(path, { recursive: true, force: true }));

function changed(folder: ManifestFolder, ...suspects: string[]): string[] {
  return [...folder.changes(new Set(suspects)).files.keys()];
}

it('reads again only what changed or is suspected to have changed', () => {
  for (const name of ['a.yaml', 'b.yaml', 'c.yaml']) writeFileSync(join(path, name), '# nothing');
  const folder = new ManifestFolder(path, new Map(), new FakeClock());
  expect(changed(folder)).toEqual(['a.yaml', 'b.yaml', 'c.yaml']);
  expect(changed(folder)).toEqual([]);
  expect(changed(folder, 'b.yaml', 'other.yaml')).toEqual(['b.yaml']);
  writeFileSync(join(path, 'c.yaml'), '# longer than before');
  rmSync(join(path, 'a.yaml'));
  expect(changed(folder)).toEqual(['c.yaml', 'a.yaml']);
  expect(changed(folder)).toEqual([]);
});

it('does not read subfolders, and says so of those that have manifests, until they have none', () => {
  mkdirSync(join(path, 'sub.yaml'));
  const below = (name: string) => join(path, 'sub.yaml', name);
  writeFileSync(below('a.yaml'), '');
  const folder = new ManifestFolder(path, new Map(), new FakeClock());
  const look = () => [...folder.changes(new Set()).files].map(([name, manifest]) => [name, manifest?.problems]);
  const problem = (what: string) => ({
    where: 'sub.yaml/',
    message: `Subfolders are not read: ${what} in it can be moved up, or put into one file`,
    inForce: true,
  });
  expect(look()).toEqual([['sub.yaml/', [problem('"a.yaml"')]]]);
  expect(look()).toEqual([]);
  writeFileSync(below('b.yaml'), '');
  expect(look()).toEqual([['sub.yaml/', [problem('2 manifests, "a.yaml" the first,')]]]);
  for (const name of ['a.yaml', 'b.yaml']) rmSync(below(name));
  expect(look()).toEqual([['sub.yaml/', undefined]]);
  expect(look()).toEqual([]);
});

it('says of a file whose name has a line break that it is not read, until it has another one', () => {
  const name = 'a\nb.yaml';
  writeFileSync(join(path, name), '');
  const folder = new ManifestFolder(path, new Map(), new FakeClock());
  const look = () => [...folder.changes(new Set()).files].map(([file, manifest]) => [file, manifest?.problems]);
  const message = 'Is not read: its name has a line break; rename it';
  expect(look()).toEqual([[name, [{ where: '"a\\nb.yaml"', message }]]]);
  expect(look()).toEqual([]);
  rmSync(join(path, name));
  expect(look()).toEqual([[name, undefined]]);
});
