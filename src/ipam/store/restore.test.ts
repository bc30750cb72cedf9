import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { formatIp } from '../../core/index.ts';
import { parseRangeSets } from '../ranges/range.ts';
import { hasLost, restoreReservations } from './restore.ts';
import { completeAttachment, release, reserve } from './store.ts';

const OWNER = { containerId: 'alive', ifname: 'eth0' };
const RECORD = 'alive\r\neth0';

let dataDir: string;
let file: string;
const location = () => ({ dataDir, network: 'net' });
const restored = (hasLink = true) => {
  const found = hasLost(location(), () => hasLink);
  const all = restoreReservations(location(), () => hasLink).map(({ address }) => formatIp(address));
  expect(all.length > 0).toBe(found);
  return all;
};
const begin = () => {
  const rangeSets = parseRangeSets([[{ subnet: '10.0.0.0/29' }]], 'ranges');
  return reserve(location(), { owner: OWNER, name: 'veth1', rangeSets });
};

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'nodeplane-restore-'));
  file = join(dataDir, 'net', '10.0.0.2');
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

it.each([undefined, '', 'al', 'alive\r\n', 'two words', '\0\0\0'])(
  'writes the reservation of a pod again whose file holds %j',
  (content) => {
    begin();
    completeAttachment(location(), 'veth1');
    expect(restored()).toEqual([]);
    if (content === undefined) rmSync(file);
    else writeFileSync(file, content);
    expect(restored()).toEqual(['10.0.0.2']);
    expect(readFileSync(file, 'utf8')).toBe(RECORD);
    expect(restored()).toEqual([]);
  },
);

it.each(['others\r\neth0', 'others', 'alive\r\neth1'])('leaves the address to whom the file names: %j', (content) => {
  begin();
  completeAttachment(location(), 'veth1');
  writeFileSync(file, content);
  expect(restored()).toEqual([]);
  expect(readFileSync(file, 'utf8')).toBe(content);
});

it('writes none for an attachment that is half-made, without its link, or nowhere', () => {
  expect(restored()).toEqual([]);
  begin();
  rmSync(file);
  expect(restored()).toEqual([]);
  completeAttachment(location(), 'veth1');
  expect(restored(false)).toEqual([]);
});

it.each(['', 'al', 'two words', '\0'])('a DEL gives back what is noted for it in a file that holds %j', (content) => {
  begin();
  completeAttachment(location(), 'veth1');
  writeFileSync(file, content);
  expect(release(location(), OWNER, 'veth1').map(formatIp)).toEqual(['10.0.0.2']);
});

it('an ADD that is tried again gets the address whose file was damaged', () => {
  begin();
  writeFileSync(file, '');
  expect(begin().map(({ address }) => formatIp(address))).toEqual(['10.0.0.2']);
});
