import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { parseCidr } from '../../core/index.ts';
import { AddressUse } from './address-use.ts';

let folder: string;
let clock: FakeClock;
let failures: unknown[];
let use: AddressUse;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-use-'));
  clock = new FakeClock();
  failures = [];
  use = new AddressUse({ dataDirs: [folder], clock, failed: (error) => failures.push(error) });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function reserve(network: string, ...addresses: string[]): void {
  mkdirSync(join(folder, network), { recursive: true });
  for (const address of addresses) writeFileSync(join(folder, network, address), 'pod\r\neth0');
}

const of = (range: string) => use.of(parseCidr(range));

it('counts each address of a range once, whatever networks reserve it', () => {
  reserve('one', '10.0.0.2', '10.0.0.63', '10.0.0.64', 'fd00::5', 'last_reserved_ip.0', 'lock');
  reserve('two', '10.0.0.2', '10.0.0.3');
  expect([of('10.0.0.0/26'), of('10.0.0.64/26'), of('fd00::/122')]).toEqual([
    { used: 3, free: 58 },
    { used: 1, free: 60 },
    { used: 1, free: 61 },
  ]);
});

it('looks again after a second, or when it is told to', async () => {
  expect(of('10.0.0.0/26')).toEqual({ used: 0, free: 61 });
  reserve('one', '10.0.0.2');
  expect(of('10.0.0.0/26').used).toBe(0);
  use.forget();
  expect(of('10.0.0.0/26').used).toBe(1);
  reserve('one', '10.0.0.3');
  await clock.advance(1000);
  expect(of('10.0.0.0/26').used).toBe(2);
});

it('keeps what it knows, and without that takes a block for used, while the directory cannot be read', () => {
  const blind = new AddressUse({ dataDirs: ['/proc/self/mem'], clock, failed: (error) => failures.push(error) });
  expect(blind.of(parseCidr('10.0.0.0/26'))).toEqual({ used: 1, free: 60 });
  expect(failures).toMatchObject([{ code: 'ERR_IPAM_STORE' }]);
  reserve('one', '10.0.0.2');
  expect(of('10.0.0.0/26').used).toBe(1);
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  use.forget();
  expect(of('10.0.0.0/26').used).toBe(1);
});
