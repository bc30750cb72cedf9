import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatKey, tryParseKey } from '../../netlink/wireguard/index.ts';
import { keyOfFile } from './key-file.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'key-'));
  path = join(folder, 'wireguard.key');
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the key file', () => {
  it('is made once, for its owner alone, and nothing is left beside it', () => {
    const key = keyOfFile(path);
    expect(readFileSync(path, 'utf8')).toBe(`${formatKey(key)}\n`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['wireguard.key']);
    expect(keyOfFile(path)).toEqual(key);
  });

  it('of `wg genkey` is taken as the kernel would', () => {
    const text = `${Buffer.alloc(32, 0xff).toString('base64')}\n`;
    writeFileSync(path, text, { mode: 0o600 });
    const key = keyOfFile(path);
    expect([key[0], key[31]]).toEqual([0xf8, 0x7f]);
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect(tryParseKey(text.trim())).toBeDefined();
  });

  it.each([
    ['', 'it has no private key in it'],
    ['nonsense', 'it has no private key in it'],
    ['A'.repeat(100_000), 'it has no private key in it'],
  ])('with something else in it is an error in words, and stays', (text, words) => {
    writeFileSync(path, text, { mode: 0o600 });
    expect(() => keyOfFile(path)).toThrow(words);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('that others may read is refused', () => {
    keyOfFile(path);
    chmodSync(path, 0o640);
    expect(() => keyOfFile(path)).toThrow('its mode is 0640, so that others may read it');
  });

  it('that is a directory is an error in words', () => {
    mkdirSync(path);
    expect(() => keyOfFile(path)).toThrow('Cannot use the private key of WireGuard in');
  });
});
