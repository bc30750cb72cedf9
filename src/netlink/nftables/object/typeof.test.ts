import { expect, it } from 'vitest';
import { typeNumber } from './datatypes.ts';
import { saysTypeof, typeofFields, typeofText, typeofValue } from './typeof.ts';

const KEY = ['ipv6_addr', 'inet_proto', 'inet_service', 'integer'] as const;
/** As nft 1.0.6 writes it for `typeof ip6 daddr . meta l4proto . th dport . numgen random mod 65536`. */
const BYTES =
  '00040d000000' +
  '0158' +
  '0014000407000000010c00040d000000010409000000' +
  '010e0004090000000106000410000000' +
  '0214000407000000010c00040b000000010402000000' +
  '031a0004170000000112000401000000010400000100020400000000';

it('writes what nft writes', () => {
  expect(Buffer.from(typeofValue(KEY)).toString('hex')).toBe(BYTES);
  expect(typeofText(KEY)).toBe('ip6 daddr . meta l4proto . th dport . numgen random mod 65536');
});

it('is said where there is an integer, and an expression for all the rest', () => {
  expect(saysTypeof(['integer'], ['ipv4_addr', 'inet_service'])).toBe(true);
  expect(saysTypeof(['ipv4_addr'], ['inet_service'])).toBe(false);
  expect(saysTypeof(['integer', 'ifname'])).toBe(false);
  expect(saysTypeof(['integer'], 'verdict')).toBe(false);
});

it('takes integers of others, of whatever length and byte order, for unknown', () => {
  const number = typeNumber(KEY);
  expect(typeofFields(number, Buffer.from(BYTES, 'hex'))).toEqual(KEY);
  const unknown = [...KEY.slice(0, -1), 'unknown'];
  for (const value of [undefined, new Uint8Array(), Buffer.from(BYTES.replace('1700', '0700'), 'hex')]) {
    expect(typeofFields(number, value)).toEqual(unknown);
  }
  expect(typeofFields(typeNumber(['ipv4_addr', 'mark']), undefined)).toEqual(['ipv4_addr', 'mark']);
});
