import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatMac, ipFromBytes, parseIp } from '../../core/index.ts';
import { macOfAddress, macOfText } from './mac.ts';

it('holds the IPv4 address it belongs to', () => {
  expect(formatMac(macOfAddress(parseIp('10.244.1.2')))).toBe('0a:58:0a:f4:01:02');
});

it('follows from the IPv6 address it belongs to', () => {
  expect(formatMac(macOfAddress(parseIp('fd00::2')))).toBe('0e:5a:a6:74:3a:dc');
});

it('is always a locally administered unicast address', () => {
  const isLocalUnicast = (mac: Uint8Array) => mac.length === 6 && (mac[0]! & 0b11) === 0b10;
  fc.assert(fc.property(fc.string(), (text) => isLocalUnicast(macOfText(text))));
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) =>
      isLocalUnicast(macOfAddress(ipFromBytes(bytes))),
    ),
  );
});

it('differs between the IPv6 addresses of a subnet', () => {
  const macs = new Set(
    Array.from({ length: 5000 }, (_, i) => formatMac(macOfAddress(parseIp(`fd00::${(i + 2).toString(16)}`)))),
  );
  expect(macs.size).toBe(5000);
});
