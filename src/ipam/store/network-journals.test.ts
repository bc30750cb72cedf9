import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { journalEntries, journaledNetworks } from './network-journals.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-networks-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the notes in a directory of reservations', () => {
  it('are none where there is no directory yet, as on a fresh node', () => {
    const missing = join(folder, 'networks');
    expect(journaledNetworks(missing)).toEqual([]);
    expect(journalEntries(missing)).toEqual([]);
  });

  it('are those of networks that this plugin has noted something about', () => {
    mkdirSync(join(folder, 'ours', '.nodeplane'), { recursive: true });
    mkdirSync(join(folder, 'of-others'));
    expect(journaledNetworks(folder)).toEqual(['ours']);
  });

  it('cannot be read from a file', () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect(() => journaledNetworks(file)).toThrow(expect.objectContaining({ code: 'ERR_IPAM_STORE' }));
  });
});
