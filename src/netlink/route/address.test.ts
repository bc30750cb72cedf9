import { describe, expect, it } from 'vitest';
import { capturedHex, capturedPayload, wireHex } from '../../../test/fakes/netlink-golden.ts';
import { parseAddressWithPrefix, parseIp } from '../../core/index.ts';
import { type AddressSpec, addressListing, decodeAddress, deleteAddress, newAddress } from './address.ts';

// Captured from iproute2 6.1.0 with `strace -e trace=sendmsg -e write=all <command>` where cni0 has index 4.

const on = (index: number, text: string, options: Partial<AddressSpec> = {}): AddressSpec => {
  const { address, prefixLength } = parseAddressWithPrefix(text);
  return { index, address, prefixLength, ...options };
};

describe('newAddress', () => {
  it.each([
    // ip addr add 10.1.0.1/16 brd + dev cni0
    [
      on(4, '10.1.0.1/16'),
      '30000000140005065592006b000000000210000004000000080002000a010001080001000a010001080004000a01ffff',
    ],
    // ip addr add 10.9.0.1/32 dev cni0
    [on(4, '10.9.0.1/32'), '28000000140005065592006b000000000220000004000000080002000a090001080001000a090001'],
    // ip addr add fd00::1/64 nodad dev cni0
    [
      on(4, 'fd00::1/64'),
      '40000000140005065592006b000000000a4002000400000014000200fd000000000000000000000000000001' +
        '14000100fd000000000000000000000000000001',
    ],
    // ip addr replace 10.1.0.1/16 brd + dev cni0
    [
      on(4, '10.1.0.1/16', { replace: true }),
      '30000000140005055592006b000000000210000004000000080002000a010001080001000a010001080004000a01ffff',
    ],
  ])('%o', (spec, captured) => {
    expect(wireHex(newAddress(spec))).toBe(capturedHex(captured));
  });

  it('gives loopback addresses host scope', () => {
    // As `ip addr add 127.0.0.2/8 dev lo` does.
    expect(decodeAddress(newAddress(on(1, '127.0.0.2/8')).payload).scope).toBe(254);
    expect(decodeAddress(newAddress(on(1, '::1/128')).payload).scope).toBe(0);
  });

  it.each([
    ['10.1.2.3/24', '10.1.2.255'],
    ['10.1.2.3/30', '10.1.2.3'],
    ['10.1.2.129/25', '10.1.2.255'],
    ['10.1.2.3/0', '255.255.255.255'],
    ['10.1.2.3/31', undefined],
    ['10.1.2.3/32', undefined],
    ['fd00::1/64', undefined],
  ])('%s has broadcast address %s', (text, broadcast) => {
    expect(decodeAddress(newAddress(on(4, text)).payload).broadcast).toEqual(broadcast && parseIp(broadcast));
  });

  it('does duplicate address detection on demand', () => {
    expect(decodeAddress(newAddress(on(4, 'fd00::1/64', { noDad: false })).payload).flags).toBe(0);
  });
});

describe('deleteAddress', () => {
  it.each([
    // ip addr del fd00:1::1/64 dev cni0
    [
      on(4, 'fd00:1::1/64'),
      '40000000150005005592006b000000000a4000000400000014000200fd000001000000000000000000000001' +
        '14000100fd000001000000000000000000000001',
    ],
    // ip addr del 10.9.0.1/32 dev cni0
    [on(4, '10.9.0.1/32'), '28000000150005005592006b000000000220000004000000080002000a090001080001000a090001'],
  ])('%o', (spec, captured) => {
    expect(wireHex(deleteAddress(spec))).toBe(capturedHex(captured));
  });
});

describe('decodeAddress', () => {
  it('reads back what was captured', () => {
    const payload = capturedPayload(
      '30000000140005065592006b000000000210000004000000080002000a010001080001000a010001080004000a01ffff',
    );
    expect(decodeAddress(payload)).toEqual({
      index: 4,
      address: parseIp('10.1.0.1'),
      prefixLength: 16,
      peer: undefined,
      broadcast: parseIp('10.1.255.255'),
      flags: 0,
      scope: 0,
      label: '',
      unknown: [],
    });
  });

  it('tells the far end of a point-to-point address from its own', () => {
    // By hand: ifaddrmsg{IPv4, /32, index 4}, IFA_LOCAL 10.0.0.1, IFA_ADDRESS 10.0.0.2.
    const payload = Buffer.from('0220000004000000080002000a000001080001000a000002', 'hex');
    expect(decodeAddress(payload)).toMatchObject({ address: parseIp('10.0.0.1'), peer: parseIp('10.0.0.2') });
  });

  it.each([
    ['0710000004000000', 'family 7 is neither IPv4 nor IPv6'],
    ['0210000004000000', 'it has neither IFA_LOCAL nor IFA_ADDRESS'],
    ['0221000004000000080002000a010001', '33 is more than the 32 bits of IPv4'],
    ['0a10000004000000080002000a010001', 'IFA_LOCAL: it has 4 bytes, expected 16 for IPv6'],
    ['02100000040000', 'struct ifaddrmsg: it has 8 bytes, found 7'],
    ['0210000004000000090002000a010001', 'IFA: the attribute at byte 8 claims 9 bytes, 8 are left'],
    ['02100000040000000600080000000000', 'IFA_FLAGS: it has 2 bytes, expected 4'],
  ])('refuses %s', (hex, message) => {
    expect(() => decodeAddress(Buffer.from(hex, 'hex'))).toThrow(
      expect.objectContaining({ code: 'ERR_NETLINK_DECODE', message: expect.stringContaining(message) }),
    );
  });
});

describe('addressListing', () => {
  it('filters by family and link in the header', () => {
    // By hand: ifaddrmsg{AF_INET6 10, 0, 0, 0, index 7}.
    const { payload } = addressListing({ family: 'IPv6', index: 7 });
    expect(Buffer.from(payload).toString('hex')).toBe('0a00000007000000');
    expect(Buffer.from(addressListing({}).payload).toString('hex')).toBe('0000000000000000');
  });
});
