import * as nodeFs from 'node:fs';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatIp, tryParseIp } from '../../core/index.ts';
import { parseRangeSets } from '../ranges/range.ts';
import type { Files } from './directory.ts';
import { release, reserve } from './store.ts';

const DUAL = parseRangeSets([[{ subnet: '10.0.0.0/29' }], [{ subnet: 'fd00::/125' }]], 'ranges');
const V4 = DUAL.slice(0, 1);
const POD = { containerId: 'pod-a', ifname: 'eth0' };
const NAME = 'pod-a-eth0';

let dataDir: string;
let network: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'nodeplane-ipam-'));
  network = join(dataDir, 'net');
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const take = (containerId: string, rangeSets = V4, ifname = 'eth0') =>
  reserve(
    { dataDir, network: 'net' },
    { owner: { containerId, ifname }, name: `${containerId}-${ifname}`, rangeSets },
  ).map((r) => formatIp(r.address));
const give = (containerId: string, ifname = 'eth0') =>
  release({ dataDir, network: 'net' }, { containerId, ifname }, `${containerId}-${ifname}`).map(formatIp);
const read = (name: string) => readFileSync(join(network, name), 'utf8');
const put = (name: string, content: string) => {
  mkdirSync(network, { recursive: true });
  writeFileSync(join(network, name), content);
};

describe('layout', () => {
  it('is that of host-local, byte for byte', () => {
    expect(take('pod-a', DUAL)).toEqual(['10.0.0.2', 'fd00::2']);
    expect(readdirSync(network).sort()).toEqual([
      '.nodeplane',
      '10.0.0.2',
      'fd00::2',
      'last_reserved_ip.0',
      'last_reserved_ip.1',
      'lock',
    ]);
    expect(read('10.0.0.2')).toBe('pod-a\r\neth0');
    expect(read('fd00::2')).toBe('pod-a\r\neth0');
    expect(read('last_reserved_ip.0')).toBe('10.0.0.2');
    expect(read('last_reserved_ip.1')).toBe('fd00::2');
    expect(statSync(network).mode & 0o777).toBe(0o755);
    expect(statSync(join(network, '10.0.0.2')).mode & 0o777).toBe(0o600);
  });

  it('keeps the round when addresses become shorter, too', () => {
    put('last_reserved_ip.0', '10.0.0.200');
    expect(take('a')).toEqual(['10.0.0.2']);
    expect(read('last_reserved_ip.0')).toBe('10.0.0.2');
  });

  it('keeps the round across releases', () => {
    expect([take('a'), take('b')].flat()).toEqual(['10.0.0.2', '10.0.0.3']);
    expect(give('a')).toEqual(['10.0.0.2']);
    expect(take('c')).toEqual(['10.0.0.4']);
  });
});

describe('reserve', () => {
  it('gives an owner its address again after an attempt that ended half-way', () => {
    expect(take('pod-a')).toEqual(['10.0.0.2']);
    expect(take('pod-b')).toEqual(['10.0.0.3']);
    expect(take('pod-a', DUAL)).toEqual(['10.0.0.2', 'fd00::2']);
    expect(take('pod-a', DUAL)).toEqual(['10.0.0.2', 'fd00::2']);
    expect(give('pod-a')).toEqual(['10.0.0.2', 'fd00::2']);
  });

  it('tells the interfaces of a container apart', () => {
    expect(take('pod-a')).not.toEqual(take('pod-a', V4, 'net1'));
  });

  it('does not take the record of an older format for its own', () => {
    put('10.0.0.2', 'pod-a');
    expect(take('pod-a')).toEqual(['10.0.0.3']);
  });

  it.each(['', '\0\0\0', '\r\n', 'x'.repeat(100_000)])(
    'treats an address with unreadable content as taken',
    (content) => {
      put('10.0.0.2', content);
      put('last_reserved_ip.0', content);
      expect(take('pod-a')).toEqual(['10.0.0.3']);
      expect(give('pod-a')).toEqual(['10.0.0.3']);
      expect(read('10.0.0.2')).toBe(content);
    },
  );

  it('survives a directory where a file should be', () => {
    mkdirSync(join(network, '10.0.0.2'), { recursive: true });
    mkdirSync(join(network, '10.0.0.3', 'x'), { recursive: true });
    expect(take('pod-a')).toEqual(['10.0.0.4']);
  });

  it('leaves out excluded addresses', () => {
    const excluded = [tryParseIp('10.0.0.2')!];
    const [reservation] = reserve({ dataDir, network: 'net' }, { owner: POD, name: NAME, rangeSets: V4, excluded });
    expect(formatIp(reservation!.address)).toBe('10.0.0.3');
  });

  it('writes nothing when a later set is exhausted', () => {
    const sets = parseRangeSets([[{ subnet: '10.0.0.0/29' }], [{ subnet: '10.1.0.0/30' }]], 'ranges');
    expect(take('first', sets)).toEqual(['10.0.0.2', '10.1.0.2']);
    const before = readdirSync(network);
    expect(() => take('second', sets)).toThrow(
      /no IP addresses available in range set: 10\.1\.0\.1-10\.1\.0\.2, 1 in use/,
    );
    expect(readdirSync(network)).toEqual(before);
    expect(read('last_reserved_ip.0')).toBe('10.0.0.2');
  });

  it('does not even make the directory when there never was a free address', () => {
    const sets = parseRangeSets([[{ subnet: '10.1.0.0/30', rangeStart: '10.1.0.1', rangeEnd: '10.1.0.1' }]], 'ranges');
    expect(() => take('pod-a', sets)).toThrow(/no IP addresses available/);
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it('names a directory it cannot use', () => {
    writeFileSync(network, 'a file');
    expect(() => take('pod-a')).toThrow(
      expect.objectContaining({ code: 'ERR_IPAM_STORE', message: `Cannot reserve an address in "${network}"` }),
    );
  });
});

describe('release', () => {
  it('knows nothing of a network without directory, and makes none', () => {
    expect(give('pod-a')).toEqual([]);
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it('takes records of the older format only if none of the present one fits', () => {
    put('10.0.0.2', 'pod-a');
    put('10.0.0.3', 'pod-a\r\neth0');
    put('10.0.0.4', 'pod-ab\r\neth0');
    expect(give('pod-a')).toEqual(['10.0.0.3']);
    expect(give('pod-a')).toEqual(['10.0.0.2']);
    expect(give('pod-a')).toEqual([]);
    expect(read('10.0.0.4')).toBe('pod-ab\r\neth0');
  });
});

/** node:fs that stops for good before its n-th change, as a killed process does. */
function crashingFiles(n: number): { files: Files; crashed: () => boolean } {
  let changes = 0;
  const counted =
    <A extends unknown[], R>(fn: (...args: A) => R) =>
    (...args: A): R => {
      if (++changes >= n) throw new Error('crashed');
      return fn(...args);
    };
  const files = {
    openSync: counted(nodeFs.openSync),
    writeSync: counted(nodeFs.writeSync as (fd: number, text: string, position?: number) => number),
    ftruncateSync: counted(nodeFs.ftruncateSync),
    closeSync: nodeFs.closeSync,
    linkSync: counted(nodeFs.linkSync),
    unlinkSync: counted(nodeFs.unlinkSync),
    mkdirSync: counted(nodeFs.mkdirSync as (path: string, options: object) => string | undefined),
  } as unknown as Files;
  return { files, crashed: () => changes >= n };
}

describe('a crash', () => {
  it('before any step of a reservation leaves nothing that the next ADD or DEL does not see', () => {
    let crashes = 0;
    for (let n = 1; ; n++) {
      rmSync(network, { recursive: true, force: true });
      const { files, crashed } = crashingFiles(n);
      let failed = false;
      try {
        reserve({ dataDir, network: 'net', files }, { owner: POD, name: NAME, rangeSets: DUAL });
      } catch {
        failed = true;
      }
      expect(failed).toBe(crashed());
      if (!failed) break;
      crashes++;
      const visible = nodeFs.existsSync(network) ? readdirSync(network).filter((name) => tryParseIp(name)) : [];
      for (const name of visible) expect(read(name), `crash before step ${n}`).toBe('pod-a\r\neth0');

      // One more run as after half of the crashes there was a DEL, after the other half a second ADD.
      if (n % 2 === 0) expect(take('pod-a', DUAL)).toHaveLength(2);
      give('pod-a');
      const left = nodeFs.existsSync(network) ? readdirSync(network) : [];
      expect(left.filter((name) => !/^(lock|\.nodeplane|last_reserved_ip\.\d)$/.test(name))).toEqual([]);
    }
    expect(crashes).toBeGreaterThan(12);
  });

  it('before any step of a release leaves what a second release finishes', () => {
    for (let n = 1; n <= 2; n++) {
      take('pod-a', DUAL);
      const { files } = crashingFiles(n);
      expect(() => release({ dataDir, network: 'net', files }, POD, NAME)).toThrow(/Cannot release/);
      give('pod-a');
      expect(readdirSync(network).filter((name) => tryParseIp(name))).toEqual([]);
    }
  });

  it('is not confused with a failure: a full disk undoes what was added', () => {
    take('other');
    let writes = 0;
    const writeSync = (fd: number, text: string, position?: number) => {
      if (++writes === 2) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      return nodeFs.writeSync(fd, text, position);
    };
    const files = { ...nodeFs, writeSync: writeSync as typeof nodeFs.writeSync };
    expect(() => reserve({ dataDir, network: 'net', files }, { owner: POD, name: NAME, rangeSets: DUAL })).toThrow(
      expect.objectContaining({ code: 'ERR_IPAM_STORE' }),
    );
    expect(readdirSync(network).sort()).toEqual(['.nodeplane', '10.0.0.2', 'last_reserved_ip.0', 'lock']);
    expect(readdirSync(join(network, '.nodeplane')).sort()).toEqual(['boot-id', 'other-eth0.adding']);
  });
});
