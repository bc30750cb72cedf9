import { isIPv6 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  cidrContains,
  cidrCovers,
  cidrsOverlap,
  formatCidr,
  lastOf,
  parseAddressWithPrefix,
  parseCidr,
} from './cidr.ts';
import { compareIp, formatIp, formatIpPort, ipFamilyOf, ipFromBytes, isLoopback, parseIp, tryParseIp } from './ip.ts';

describe('parseIp', () => {
  it.each([
    ['10.96.0.1', '10.96.0.1'],
    ['010.096.000.001', '10.96.0.1'],
    ['::', '::'],
    ['::1', '::1'],
    ['FD00:0:0:0:1:0:0:1', 'fd00::1:0:0:1'],
    ['2001:db8:0:0:1:0:0:0', '2001:db8:0:0:1::'],
    ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
  ])('reads %s as %s', (text, canonical) => {
    expect(formatIp(parseIp(text))).toBe(canonical);
  });

  it.each([
    '',
    '10.0.0',
    '10.0.0.256',
    '10.0.0.1 ',
    '1:2',
    ':::',
    '1::2::3',
    'g::',
    'fe80::1%eth0',
    '1:2:3:4:5:6:7:8:9',
    '::1.2.3',
  ])('refuses "%s"', (text) => {
    expect(tryParseIp(text)).toBeUndefined();
    expect(() => parseIp(text)).toThrow(expect.objectContaining({ code: 'ERR_ADDRESS_INVALID' }));
  });

  it('formats every 16 bytes as text that Node accepts and that reads back the same', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        const ip = ipFromBytes(bytes);
        const text = formatIp(ip);
        fc.pre(tryParseIp(text)?.family === 'IPv6');
        expect(isIPv6(text)).toBe(true);
        expect(compareIp(parseIp(text), ip)).toBe(0);
      }),
    );
  });

  it('never throws anything but its own error', () => {
    fc.assert(fc.property(fc.string(), (text) => void tryParseIp(text)));
  });
});

describe('addresses that were read', () => {
  const texts = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string(), fc.stringMatching(/^[\d.:f]{0,16}$/));

  it('are of the family that their text is said to be of', () => {
    fc.assert(fc.property(texts, (text) => ipFamilyOf(text) === tryParseIp(text)?.family));
  });

  it('have memory of their own: what is read later changes none of them', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.ipV4(), fc.ipV6()), { maxLength: 300 }), (many) => {
        const read = many.map((text) => parseIp(text));
        const text = read.map(formatIp);
        expect(many.map((each) => formatIp(parseIp(each)))).toEqual(text);
        expect(read.map(formatIp)).toEqual(text);
        for (const { bytes } of read) bytes.fill(255);
        for (const { bytes } of read) expect(bytes.every((byte) => byte === 255)).toBe(true);
        expect(many.map((each) => formatIp(parseIp(each)))).toEqual(text);
      }),
      { numRuns: 30 },
    );
  });
});

describe('CIDR', () => {
  it('clears host bits in parseCidr and keeps them in parseAddressWithPrefix', () => {
    expect(formatCidr(parseCidr('10.244.3.7/20'))).toBe('10.244.0.0/20');
    expect(formatCidr(parseAddressWithPrefix('10.244.3.7/20'))).toBe('10.244.3.7/20');
    expect(formatCidr(parseCidr('fd00:10:244:1::7/64'))).toBe('fd00:10:244:1::/64');
  });

  it.each(['10.0.0.0', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/1e1', '/8'])(
    'refuses "%s"',
    (text) => {
      expect(() => parseCidr(text)).toThrow(expect.objectContaining({ code: 'ERR_ADDRESS_INVALID' }));
    },
  );

  it('contains addresses of its own family only', () => {
    expect(cidrContains(parseCidr('10.0.0.0/8'), parseIp('10.255.1.2'))).toBe(true);
    expect(cidrContains(parseCidr('10.0.0.0/8'), parseIp('11.0.0.0'))).toBe(false);
    expect(cidrContains(parseCidr('0.0.0.0/0'), parseIp('::1'))).toBe(false);
    expect(cidrContains(parseCidr('::/0'), parseIp('fd00::1'))).toBe(true);
  });

  it.each([
    ['10.0.0.0/8', '10.0.0.0/8', true, true],
    ['10.0.0.0/8', '10.1.0.0/16', true, true],
    ['10.1.0.0/16', '10.0.0.0/8', false, true],
    ['10.0.0.0/16', '10.1.0.0/16', false, false],
    ['0.0.0.0/0', '::/0', false, false],
  ])('%s and %s: the first covers the second %s, they overlap %s', (one, other, covers, overlap) => {
    expect(cidrCovers(parseCidr(one), parseCidr(other))).toBe(covers);
    expect(cidrsOverlap(parseCidr(one), parseCidr(other))).toBe(overlap);
  });
});

it.each([
  ['10.244.1.0/24', '10.244.1.255'],
  ['10.244.1.7/32', '10.244.1.7'],
  ['0.0.0.0/0', '255.255.255.255'],
  ['fd00::/12', 'fd0f:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
])('the last address of %s is %s', (block, last) => {
  expect(formatIp(lastOf(parseCidr(block)))).toBe(last);
});

it('knows loopback and bracketed endpoints', () => {
  expect(isLoopback(parseIp('127.3.2.1'))).toBe(true);
  expect(isLoopback(parseIp('::1'))).toBe(true);
  expect(isLoopback(parseIp('10.0.0.1'))).toBe(false);
  expect(formatIpPort(parseIp('fd00::5'), 80)).toBe('[fd00::5]:80');
  expect(formatIpPort(parseIp('10.0.0.5'), 80)).toBe('10.0.0.5:80');
});
