import { beforeEach, expect, it } from 'vitest';
import { Remarks } from './remarks.ts';

const LEGACY = 'Chain FORWARD of legacy iptables drops';
const KEY = 'Key "x" is not known';
let remarks: Remarks;
beforeEach(() => {
  remarks = new Remarks();
});

const add = (lines: readonly string[], change: { network?: string; verb?: string; failed?: boolean } = {}) =>
  remarks.fresh({
    verb: change.verb ?? 'ADD',
    config: JSON.stringify({ name: change.network ?? 'net' }),
    failed: change.failed ?? false,
    remarks: lines.map((line) => `${line}\n`).join(''),
  });

it('says once what holds for every pod', () => {
  expect(add([LEGACY])).toBe(LEGACY);
  for (let i = 0; i < 236; i++) expect(add([LEGACY])).toBe('');
  expect(add([LEGACY, KEY])).toBe(KEY);
});

it('says it again when the cause went and came back', () => {
  add([LEGACY, KEY]);
  expect(add([KEY])).toBe('');
  expect(add([LEGACY, KEY])).toBe(LEGACY);
  expect(add([])).toBe('');
  expect(add([LEGACY, KEY])).toBe(`${LEGACY}\n${KEY}`);
});

it('does not take the failure of a request for the end of a cause', () => {
  add([LEGACY]);
  expect(add([], { failed: true })).toBe('');
  expect(add([KEY], { failed: true })).toBe(KEY);
  expect(add([LEGACY, KEY])).toBe('');
});

it('keeps networks and verbs apart', () => {
  add([LEGACY]);
  expect(add([], { network: 'other' })).toBe('');
  expect(add([], { verb: 'DEL' })).toBe('');
  expect(add([LEGACY])).toBe('');
  expect(add([LEGACY], { network: 'other' })).toBe(LEGACY);
});

it('takes whatever a caller sends as configuration, and does not grow with what callers invent', () => {
  for (const config of ['x', 'null', '[]', '{"name":{}}']) {
    expect(remarks.fresh({ verb: 'ADD', config, failed: true, remarks: `of ${config}` })).toBe(`of ${config}`);
  }
  add([LEGACY]);
  for (let i = 0; i < 1000; i++) add([LEGACY], { network: `n${i}` });
  expect(add([LEGACY], { network: 'n999' })).toBe('');
  expect(add([LEGACY])).toBe(LEGACY);
});
