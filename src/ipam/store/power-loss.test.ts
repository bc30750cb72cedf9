import fs, { mkdirSync, mkdtempSync, readdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { formatIp } from '../../core/index.ts';
import { parseRangeSets } from '../ranges/range.ts';
import { completeAttachment, release, reserve } from './store.ts';

const RANGES = parseRangeSets([[{ subnet: '10.0.0.0/29' }]], 'ranges');
const EARLIER = { id: 'earlier-run', startedMs: Date.now() - 60_000 };
/** Begins after all files of the earlier one. */
const NEXT = { id: 'next-run', startedMs: Date.now() + 60_000 };

let dataDir: string;
let network: string;
let boot: typeof EARLIER;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'nodeplane-power-'));
  network = join(dataDir, 'net');
  boot = EARLIER;
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const location = () => ({ dataDir, network: 'net', boot: () => boot });
const take = (name: string) =>
  reserve(location(), { owner: { containerId: name, ifname: 'eth0' }, name, rangeSets: RANGES }).map((r) =>
    formatIp(r.address),
  );
const give = (name: string) => release(location(), { containerId: name, ifname: 'eth0' }, name);

/** How often `work` waited for the disk. */
function syncs(work: () => void): number {
  let count = 0;
  const { fsyncSync } = fs;
  const setSync = (fn: typeof fsyncSync) => {
    fs.fsyncSync = fn;
    syncBuiltinESMExports();
  };
  setSync((fd) => {
    count++;
    fsyncSync(fd);
  });
  try {
    work();
  } finally {
    setSync(fsyncSync);
  }
  return count;
}

it('is prepared for by the note of the kernel’s run, synced with its folder, and not by pods that wait for the disk', () => {
  expect(syncs(() => take('a'))).toBe(2);
  const others = () => {
    take('b');
    completeAttachment(location(), 'b');
    give('b');
    take('c');
  };
  expect(syncs(others)).toBe(0);
  boot = NEXT;
  expect(syncs(() => take('d'))).toBe(2);
});

/** What was written last may be there, may be missing, and may be there without a content. */
const LEAVES = {
  all: () => {},
  nothing: (path: string) => unlinkSync(path),
  'a name': (path: string) => writeFileSync(path, ''),
};
const CASES = Object.keys(LEAVES).flatMap((address) => Object.keys(LEAVES).map((entry) => ({ address, entry })));

it.each(CASES)('that leaves $address of an address and $entry of its entry leaves no trace in the next run', (left) => {
  take('a');
  completeAttachment(location(), 'a');
  take('b');
  for (const address of ['10.0.0.2', '10.0.0.3']) LEAVES[left.address as keyof typeof LEAVES](join(network, address));
  for (const entry of ['a', 'b.adding']) {
    LEAVES[left.entry as keyof typeof LEAVES](join(network, '.nodeplane', entry));
  }
  boot = NEXT;
  take('c');
  expect(readdirSync(network).filter((name) => name.includes('10.0.0'))).toHaveLength(1);
  expect(readdirSync(join(network, '.nodeplane')).sort()).toEqual(['boot-id', 'c.adding']);
});

it('of a node whose clock begins in the past leaves no empty file behind, and nothing that is no file is in the way', () => {
  take('a');
  writeFileSync(join(network, '10.0.0.5'), '');
  mkdirSync(join(network, '10.0.0.6'));
  writeFileSync(join(network, '10.0.0.4'), 'theirs\r\neth0');
  boot = { id: 'next-run', startedMs: 0 };
  expect(take('b')).toEqual(['10.0.0.3']);
  expect(readdirSync(network).filter((name) => name.startsWith('10.'))).toEqual(['10.0.0.3', '10.0.0.4', '10.0.0.6']);
  boot = { id: 'one-more-run', startedMs: NEXT.startedMs };
  expect(take('c')).toEqual(['10.0.0.4']);
});
