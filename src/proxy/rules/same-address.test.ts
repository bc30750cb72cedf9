import { describe, expect, it } from 'vitest';
import { walkPacket } from '../../../test/fakes/packet-walk.ts';
import { addressBits, formatIp, ipFromBytes, parseIp } from '../../core/index.ts';
import { formatRule } from './rule.ts';
import { returnUnlessSameAddress } from './same-address.ts';

describe.each([
  ['IPv4', '10.244.1.5', '127.255.0.128'],
  ['IPv6', 'fd00:10:244:1::5', '::ffff:ffff:8000:1'],
] as const)('%s', (family, ...addresses) => {
  const rules = [...returnUnlessSameAddress(family), { target: '-j MASQUERADE' }].map(formatRule);
  const walk = (source: string, destination: string) =>
    walkPacket(new Map([['HAIRPIN', rules]]), 'HAIRPIN', { source, destination, protocol: 'tcp', port: 80 });

  it('lets on a packet of an address to itself', () => {
    for (const address of addresses) expect(walk(address, address).verdict).toBe('MASQUERADE');
  });

  it('sends back a packet whose addresses differ, be it in a single bit', () => {
    for (const address of addresses) {
      // Both families differ in each byte; walking all bits of IPv6 takes seconds.
      for (let bit = 0; bit < addressBits(family); bit += family === 'IPv4' ? 1 : 5) {
        const bytes = Uint8Array.from(parseIp(address).bytes);
        bytes[bit >> 3]! ^= 0x80 >> (bit & 7);
        const other = formatIp(ipFromBytes(bytes));
        expect(walk(address, other)).toMatchObject({ verdict: undefined, masqueraded: false });
        expect(walk(other, address)).toMatchObject({ verdict: undefined, masqueraded: false });
      }
    }
  });

  it('shows most packets a few rules', () => {
    let met = 0;
    for (let n = 0; n < 256; n++) {
      const [source, destination] = [n, (n * 37 + 11) & 255].map((last) => {
        const bytes = Uint8Array.from(parseIp(addresses[0]!).bytes);
        bytes[bytes.length - 1] = last;
        return formatIp(ipFromBytes(bytes));
      });
      met += walk(source!, destination!).met / 256;
    }
    expect(met).toBeLessThan(8);
  });
});
