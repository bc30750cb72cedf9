import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatIp } from '../../core/index.ts';
import { parseRangeSets } from '../ranges/range.ts';
import { checkAvailable, collectGone, collectInvalid, hasGone, isGone } from './collect.ts';
import { formatCollected } from './collected.ts';
import type { JournalEntry } from './journal.ts';
import { thisMaker } from './maker.ts';
import { completeAttachment, journalEntry, noteAttachment, reserve } from './store.ts';

const RANGES = parseRangeSets([[{ subnet: '10.0.0.0/29' }]], 'ranges');
const NOW = { id: 'this-run', startedMs: 0 };

let dataDir: string;
let network: string;
let boot: { id: string; startedMs: number };
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'nodeplane-ipam-'));
  network = join(dataDir, 'net');
  boot = NOW;
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const location = () => ({ dataDir, network: 'net', boot: () => boot });
function take(containerId: string, { complete = true } = {}): string {
  const request = { owner: { containerId, ifname: 'eth0' }, name: containerId, rangeSets: RANGES };
  const [reservation] = reserve(location(), request);
  if (complete) completeAttachment(location(), containerId);
  return formatIp(reservation!.address);
}
const put = (name: string, content: string) => {
  mkdirSync(network, { recursive: true });
  writeFileSync(join(network, name), content);
};
const none = () => false;
const reserved = () => readdirSync(network).filter((name) => name.startsWith('10.'));
/** Has the note about an attachment say that another process made it. */
function madeBy(maker: string, file: string): void {
  const path = join(network, '.nodeplane', file);
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), maker }));
}

const collectInWords = (hasLink: (name: string) => boolean, remove = (_: JournalEntry) => true) =>
  collectGone(location(), { hasLink, remove }).map(formatCollected);

describe('isGone', () => {
  const here = thisMaker(NOW);
  const entry: JournalEntry = {
    name: 'veth1',
    owner: { containerId: 'a', ifname: 'eth0' },
    addresses: [],
    features: [],
    note: undefined,
    maker: here,
    complete: true,
  };
  const killed = { ...here, process: `${process.pid}:1` };
  it.each<[string, Partial<JournalEntry>, boolean, boolean]>([
    ['an attachment with its link', {}, true, false],
    ['one without', {}, false, true],
    ['one of an earlier version without', { maker: { ...killed, netns: undefined } }, false, true],
    ['one whose link is in another namespace', { maker: { ...here, netns: 'net:[1]' } }, false, false],
    ['one of an earlier run', { maker: { ...here, bootId: 'x' } }, true, true],
    ['one of an earlier run in another namespace', { maker: { ...here, bootId: 'x', netns: 'net:[1]' } }, true, true],
    ['one that is being made', { complete: false }, false, false],
    ['a half-made one of an earlier run', { complete: false, maker: { ...here, bootId: 'x' } }, true, true],
    ['a half-made one without link', { complete: false, maker: killed }, false, true],
    ['a half-made one with its link', { complete: false, maker: killed }, true, true],
    ['a complete one whose maker is gone', { maker: killed }, true, false],
  ])('of %s', (_, change, hasLink, gone) => {
    expect(isGone({ ...entry, ...change }, here, () => hasLink)).toBe(gone);
  });
});

describe('collectGone', () => {
  it('gives back what is gone, after what is left of it was removed, and nothing else', () => {
    take('a');
    take('b');
    put('10.0.0.6', 'b\r\neth0');
    const removed: string[] = [];
    const remove = ({ name }: JournalEntry) => {
      removed.push(`${name} while ${reserved().length}`);
      return true;
    };
    expect(hasGone(location(), (name) => name !== 'b')).toBe(true);
    expect(collectInWords((name) => name !== 'b', remove)).toEqual(['10.0.0.3 of b eth0']);
    expect(removed).toEqual(['b while 3']);
    expect(reserved()).toEqual(['10.0.0.2', '10.0.0.6']);
    expect(journalEntry(location(), 'b')).toBeUndefined();
    expect(hasGone(location(), (name) => name !== 'b')).toBe(false);
  });

  it('keeps the records of what could not be removed', () => {
    take('a');
    expect(collectInWords(none, () => false)).toEqual([]);
    expect(reserved()).toEqual(['10.0.0.2']);
    expect(collectInWords(none)).toEqual(['10.0.0.2 of a eth0']);
  });

  it('leaves alone what is made again before its turn comes', () => {
    take('a');
    let looks = 0;
    expect(collectInWords(() => ++looks > 1)).toEqual([]);
    expect(reserved()).toEqual(['10.0.0.2']);
  });

  it('leaves alone what is being made, and takes what was left half-made', () => {
    take('a', { complete: false });
    expect(collectInWords(none)).toEqual([]);
    madeBy(`${process.pid}:1`, 'a.adding');
    expect(collectInWords(none)).toEqual(['10.0.0.2 of a eth0']);
    expect(readdirSync(join(network, '.nodeplane'))).toEqual(['boot-id']);
  });

  it('takes what was noted of an attachment without address', () => {
    noteAttachment(location(), { owner: { containerId: 'a', ifname: 'eth0' }, name: 'a', note: undefined });
    completeAttachment(location(), 'a');
    expect(collectInWords(() => true)).toEqual([]);
    expect(collectInWords(none)).toEqual(['what was left of a eth0']);
    expect(journalEntry(location(), 'a')).toBeUndefined();
  });

  it('takes what was reserved before the last boot, whoever reserved it, and says so', () => {
    take('a');
    put('10.0.0.6', 'theirs\r\neth0');
    boot = { id: 'next-run', startedMs: Date.now() + 60_000 };
    expect(hasGone(location(), () => true)).toBe(true);
    expect(collectInWords(() => true)).toEqual(['10.0.0.2 of a eth0', '10.0.0.6 of theirs eth0']);
    expect(hasGone(location(), () => true)).toBe(false);
  });

  it('takes no copy of a note, under a name that no link can have, for another attachment', () => {
    take('veth0123456789a');
    const notes = join(network, '.nodeplane');
    writeFileSync(join(notes, 'veth0123456789a.bak'), readFileSync(join(notes, 'veth0123456789a')));
    expect(collectInWords((name) => name === 'veth0123456789a')).toEqual([]);
    expect(reserved()).toEqual(['10.0.0.2']);
  });

  it('does not take an address that belongs to somebody else by now', () => {
    take('a');
    put('10.0.0.2', 'somebody\r\neth0');
    expect(collectInWords(none)).toEqual(['what was left of a eth0']);
    expect(reserved()).toEqual(['10.0.0.2']);
  });

  it('makes no directory', () => {
    expect(hasGone(location(), none)).toBe(false);
    expect(collectInWords(none)).toEqual([]);
    expect(existsSync(network)).toBe(false);
  });
});

describe('collectInvalid', () => {
  it('keeps valid owners, whatever plugin reserved for them, in both formats', () => {
    take('a');
    take('b');
    put('10.0.0.4', 'c\r\neth0');
    put('10.0.0.5', 'd');
    put('10.0.0.6', 'e');
    const isValid = (containerId: string, ifname: string | undefined) =>
      ['a', 'c', 'd'].includes(containerId) && (ifname ?? 'eth0') === 'eth0';
    expect(collectInvalid(location(), isValid, () => true).map(formatCollected)).toEqual([
      '10.0.0.3 of b eth0',
      '10.0.0.6 of e',
    ]);
    expect(reserved()).toEqual(['10.0.0.2', '10.0.0.4', '10.0.0.5']);
    expect(journalEntry(location(), 'a')).toBeDefined();
    expect(journalEntry(location(), 'b')).toBeUndefined();
  });

  it('keeps what is being made', () => {
    take('a', { complete: false });
    expect(
      collectInvalid(
        location(),
        () => false,
        () => false,
      ),
    ).toEqual([]);
    expect(reserved()).toEqual(['10.0.0.2']);
  });

  it('takes files that name nobody, and keeps those it cannot read', () => {
    put('10.0.0.2', '');
    put('10.0.0.3', 'two words');
    mkdirSync(join(network, '10.0.0.4'));
    expect(
      collectInvalid(
        location(),
        () => false,
        () => false,
      ).map(formatCollected),
    ).toEqual(['10.0.0.2 of nobody']);
    expect(reserved()).toEqual(['10.0.0.3', '10.0.0.4']);
  });

  it.each<[string, (record: string) => string]>([
    ['emptied', () => ''],
    ['cut short', (record) => record.slice(0, 3)],
    ['without its interface', (record) => record.slice(0, -4)],
    ['overwritten', () => 'two words'],
    ['overwritten with zeros', (record) => '\0'.repeat(record.length)],
  ])('knows by the note whose file it is that is %s', (_, damage) => {
    for (const [owner, address] of [
      ['alive', '10.0.0.2'],
      ['dead', '10.0.0.3'],
    ] as const) {
      take(owner);
      put(address, damage(`${owner}\r\neth0`));
    }
    const isAlive = (containerId: string) => containerId === 'alive';
    expect(collectInvalid(location(), isAlive, isAlive).map(formatCollected)).toEqual(['10.0.0.3 of dead eth0']);
    expect(reserved()).toEqual(['10.0.0.2']);
  });

  it('removes notes that cannot be read, but for those of valid attachments', () => {
    for (const owner of ['alive', 'dead']) {
      take(owner);
      writeFileSync(join(network, '.nodeplane', owner), '{"containerId":');
    }
    const isAlive = (containerId: string) => containerId === 'alive';
    expect(collectInvalid(location(), isAlive, isAlive).map(formatCollected)).toEqual(['10.0.0.3 of dead eth0']);
    expect(readdirSync(join(network, '.nodeplane'))).toEqual(['alive', 'boot-id']);
  });
});

describe('a new run of the kernel', () => {
  it('gives back what the one before reserved, by the journal, and by the age of files of others', () => {
    take('a');
    put('10.0.0.6', 'theirs\r\neth0');
    boot = { id: 'next-run', startedMs: Date.now() + 60_000 };
    expect(take('b')).toBe('10.0.0.3');
    expect(reserved()).toEqual(['10.0.0.3']);
    put('10.0.0.5', 'theirs\r\neth0');
    expect(take('c')).toBe('10.0.0.4');
    expect(reserved()).toEqual(['10.0.0.3', '10.0.0.4', '10.0.0.5']);
  });

  it('leaves what others reserved since it began', () => {
    take('a');
    put('10.0.0.6', 'theirs\r\neth0');
    boot = { id: 'next-run', startedMs: Date.now() - 60_000 };
    take('b');
    expect(reserved()).toEqual(['10.0.0.3', '10.0.0.6']);
  });

  it('is not assumed where nothing is known of the one before', () => {
    put('10.0.0.2', 'theirs\r\neth0');
    boot = { id: 'next-run', startedMs: Date.now() + 60_000 };
    expect(take('a')).toBe('10.0.0.3');
    expect(reserved()).toEqual(['10.0.0.2', '10.0.0.3']);
  });
});

describe('checkAvailable', () => {
  const check = (hasLink = () => true) => checkAvailable(location(), { rangeSets: RANGES }, hasLink);
  const fill = () => {
    for (const name of 'abcde') take(name);
  };

  it('is content with a directory that is not there yet, and makes none', () => {
    check();
    expect(existsSync(network)).toBe(false);
  });

  it('says what an ADD would say, unless something can be given back', () => {
    fill();
    expect(() => check()).toThrow(expect.objectContaining({ code: 'ERR_IPAM_EXHAUSTED' }));
    check(none);
    boot = { id: 'next-run', startedMs: Date.now() };
    check();
    expect(reserved()).toHaveLength(5);
  });

  it('refuses a place that cannot be written', () => {
    writeFileSync(network, '');
    expect(() => check()).toThrow(/it is not writable$/);
  });
});
