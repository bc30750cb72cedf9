import { describe, expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import { appendPort, formatBindAddress, isUnspecified, parseBindAddress } from './bind-address.ts';

describe('parseBindAddress', () => {
  it.each([
    ['127.0.0.1:10249', '127.0.0.1:10249'],
    ['127.000.000.001:80', '127.0.0.1:80'],
    ['[::1]:1', '[::1]:1'],
    ['[FD00:0::1]:65535', '[fd00::1]:65535'],
  ])('reads %s', (text, canonical) => {
    expect(formatBindAddress(parseBindAddress(text)!)).toBe(canonical);
  });

  it.each(['', '127.0.0.1', '::1', '[::1]', ':80', 'localhost:80', '1.2.3.4:0', '1.2.3.4:65536', '1.2.3.4:', '::1:80'])(
    'refuses "%s"',
    (text) => {
      expect(parseBindAddress(text)).toBeUndefined();
    },
  );
});

describe('appendPort', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1:7'],
    ['::1', '[::1]:7'],
    ['[::1]', '[::1]:7'],
    ['127.0.0.1:80', '127.0.0.1:80'],
    ['[::1]:80', '[::1]:80'],
    ['localhost', 'localhost'],
    ['', ''],
  ])('makes %s into %s', (text, expected) => {
    expect(appendPort(text, 7)).toBe(expected);
  });
});

it('knows the addresses that stand for all', () => {
  expect(['0.0.0.0', '::', '0.0.0.1', '::1'].map((text) => isUnspecified(parseIp(text)))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
