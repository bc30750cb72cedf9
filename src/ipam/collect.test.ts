import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatIp } from '../core/index.ts';
import { checkAvailable, collectGone, collectInvalid } from './collect.ts';
import { parseRangeSets } from './range.ts';
import { completeReservation, journalEntry, reserve } from './store.ts';

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
  if (complete) completeReservation(location(), containerId);
  return formatIp(reservation!.address);
}
const put = (name: string, content: string) => {
  mkdirSync(network, { recursive: true });
  writeFileSync(join(network, name), content);
};
const reserved = () => readdirSync(network).filter((name) => name.startsWith('10.'));
/** Has the note about an attachment say that another process made it. */
function madeBy(maker: string, file: string): void {
  const path = join(network, '.nodeplane', file);
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), maker }));
}

describe('collectGone', () => {
  it('gives back what is said to be gone, and nothing else', () => {
    take('a');
    take('b');
    put('10.0.0.6', 'b\r\neth0');
    expect(collectGone(location(), ({ name }) => name === 'b')).toEqual(['10.0.0.3 of b eth0']);
    expect(reserved()).toEqual(['10.0.0.2', '10.0.0.6']);
    expect(journalEntry(location(), 'b')).toBeUndefined();
  });

  it('leaves alone what is being made, and takes what was left half-made', () => {
    take('a', { complete: false });
    expect(collectGone(location(), () => true)).toEqual([]);
    madeBy(`${process.pid}:1`, 'a.adding');
    expect(collectGone(location(), () => true)).toEqual(['10.0.0.2 of a eth0']);
    expect(readdirSync(join(network, '.nodeplane'))).toEqual(['boot-id']);
  });

  it('does not take an address that belongs to somebody else by now', () => {
    take('a');
    put('10.0.0.2', 'somebody\r\neth0');
    expect(collectGone(location(), () => true)).toEqual([]);
    expect(reserved()).toEqual(['10.0.0.2']);
  });

  it('makes no directory', () => {
    expect(collectGone(location(), () => true)).toEqual([]);
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
    expect(collectInvalid(location(), isValid)).toEqual(['10.0.0.3 of b eth0', '10.0.0.6 of e']);
    expect(reserved()).toEqual(['10.0.0.2', '10.0.0.4', '10.0.0.5']);
    expect(journalEntry(location(), 'a')).toBeDefined();
    expect(journalEntry(location(), 'b')).toBeUndefined();
  });

  it('keeps what is being made', () => {
    take('a', { complete: false });
    expect(collectInvalid(location(), () => false)).toEqual([]);
    expect(reserved()).toEqual(['10.0.0.2']);
  });

  it('takes files that name nobody, and keeps those it cannot read', () => {
    put('10.0.0.2', '');
    put('10.0.0.3', 'two words');
    mkdirSync(join(network, '10.0.0.4'));
    expect(collectInvalid(location(), () => false)).toEqual(['10.0.0.2 of nobody']);
    expect(reserved()).toEqual(['10.0.0.3', '10.0.0.4']);
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
  const check = (isGone = () => false) => checkAvailable(location(), { rangeSets: RANGES }, isGone);
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
    check(() => true);
    boot = { id: 'next-run', startedMs: Date.now() };
    check();
    expect(reserved()).toHaveLength(5);
  });

  it('refuses a place that cannot be written', () => {
    writeFileSync(network, '');
    expect(() => check()).toThrow(/it is not writable$/);
  });
});
