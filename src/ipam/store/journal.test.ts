import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import { Journal } from './journal.ts';

let folder: string;
let journal: Journal;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-journal-'));
  journal = new Journal(folder);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ENTRY = {
  name: 'veth1',
  owner: { containerId: 'a', ifname: 'eth0' },
  addresses: [parseIp('10.0.0.2'), parseIp('fd00::2')],
  features: ['masquerade'],
  note: { ips: ['10.0.0.2/24'] },
  maker: { bootId: 'x', process: '1:2', pidns: 'pid:[1]', netns: 'net:[2]', begunMs: 3 },
};

it('knows an attachment from its beginning to its end', () => {
  expect(journal.read('veth1')).toBeUndefined();
  expect(journal.list()).toEqual([]);
  journal.begin(ENTRY);
  expect(journal.read('veth1')).toEqual({ ...ENTRY, complete: false });
  journal.complete('veth1');
  expect(journal.list()).toEqual([{ ...ENTRY, complete: true }]);
  journal.begin({ ...ENTRY, features: [] });
  expect(journal.list()).toEqual([{ ...ENTRY, features: [], complete: false }]);
  journal.remove('veth1');
  journal.remove('veth1');
  expect(readdirSync(journal.path)).toEqual([]);
});

it.each(['', '{', '[]', 'null', '{"containerId":"a"}', '{"containerId":1,"ifname":2,"bootId":3,"maker":4}'])(
  'takes a file that holds %j for none',
  (content) => {
    journal.begin(ENTRY);
    writeFileSync(join(journal.path, 'veth1.adding'), content);
    expect(journal.read('veth1')).toBeUndefined();
    expect(journal.list()).toEqual([]);
  },
);

it('leaves out addresses that are none, and half-written files', () => {
  journal.begin(ENTRY);
  const text =
    '{"containerId":"a","ifname":"eth0","bootId":"x","maker":"1:2","features":[],"addresses":["x",5,"10.0.0.2"]}';
  writeFileSync(join(journal.path, 'veth2'), text);
  writeFileSync(join(journal.path, 'veth3.tmp'), text);
  expect(journal.list().map(({ name }) => name)).toEqual(['veth1', 'veth2']);
  // As the first versions wrote it: without a note, and with less about the maker.
  expect(journal.read('veth2')).toMatchObject({
    addresses: [parseIp('10.0.0.2')],
    note: undefined,
    maker: { bootId: 'x', process: '1:2', pidns: undefined, netns: undefined, begunMs: 0 },
  });
});

it('remembers the last run of the kernel', () => {
  expect(journal.lastBootId()).toBeUndefined();
  journal.noteBootId('first');
  journal.noteBootId('second');
  expect(journal.lastBootId()).toBe('second');
  expect(journal.list()).toEqual([]);
});

it('tells of files that are no entries, but for what is its own, and copies', () => {
  journal.begin(ENTRY);
  journal.noteBootId('x');
  for (const name of ['veth2', 'veth3.adding', 'entry.tmp', 'veth0123456789a.bak']) {
    writeFileSync(join(journal.path, name), '{');
  }
  expect(journal.damaged().sort()).toEqual(['veth2', 'veth3']);
  expect(journal.fileOf('veth3')).toBe(join(journal.path, 'veth3.adding'));
  journal.sweep();
  expect(readdirSync(journal.path).sort()).toEqual(['boot-id', 'entry.tmp', 'veth0123456789a.bak', 'veth1.adding']);
});
