import fc from 'fast-check';
import { IPv4, IPv4CidrRange, IPv4Prefix, IPv6, IPv6CidrRange, IPv6Prefix, RangedSet } from 'ip-num';
import { expect, it } from 'vitest';
import { addressBits, formatIp, type IpAddress, ipEquals } from './ip.ts';
import { ipFromValue, ipValue, spanBetween, spanContains, spanOfCidr, spansOverlap } from './ip-number.ts';

const address = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }).map((value) => ipFromValue('IPv4', value)),
  fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }).map((value) => ipFromValue('IPv6', value)),
);
const theirs = (ip: IpAddress) => (ip.family === 'IPv4' ? new IPv4(formatIp(ip)) : new IPv6(formatIp(ip)));

it('addresses are the numbers that ip-num says they are', () => {
  fc.assert(
    fc.property(address, (ip) => {
      expect(ipValue(ip)).toBe(theirs(ip).getValue());
      expect(ipEquals(ipFromValue(ip.family, ipValue(ip)), ip)).toBe(true);
    }),
  );
});

it('blocks begin and end where ip-num says they do', () => {
  fc.assert(
    fc.property(address, fc.nat(128), (ip, bits) => {
      const prefixLength = bits % (addressBits(ip.family) + 1);
      const block =
        ip.family === 'IPv4'
          ? new IPv4CidrRange(new IPv4(formatIp(ip)), IPv4Prefix.fromNumber(BigInt(prefixLength)))
          : new IPv6CidrRange(new IPv6(formatIp(ip)), IPv6Prefix.fromNumber(BigInt(prefixLength)));
      const { first, last } = spanOfCidr({ address: ip, prefixLength });
      expect([first, last]).toEqual([block.getFirst().getValue(), block.getLast().getValue()]);
    }),
  );
});

it('spans contain and overlap what ip-num says they do, but for one mistake of its', () => {
  const four = fc
    .array(fc.bigInt({ min: 0n, max: 40n }), { minLength: 4, maxLength: 4 })
    .map((values) => values.map((value) => ipFromValue('IPv6', value)));
  fc.assert(
    fc.property(four, (ips) => {
      const [a, b, c, d] = ips as [IpAddress, IpAddress, IpAddress, IpAddress];
      const [low, high] = ipValue(a) <= ipValue(b) ? [a, b] : [b, a];
      const [low2, high2] = ipValue(c) <= ipValue(d) ? [c, d] : [d, c];
      const set = (from: IpAddress, to: IpAddress) => new RangedSet(theirs(from) as IPv6, theirs(to) as IPv6);
      const span = spanBetween(low, high);
      expect(spanContains(span, c)).toBe(set(low, high).contains(set(c, c)));
      // ip-num 1.6 misses spans that share one address only, the last of one and the first of the other.
      const touches = ipEquals(high, low2) || ipEquals(high2, low);
      const overlaps =
        set(low, high).isOverlapping(set(low2, high2)) ||
        (span.first >= ipValue(low2) && span.last <= ipValue(high2)) ||
        (span.first <= ipValue(low2) && span.last >= ipValue(high2));
      expect(spansOverlap(span, spanBetween(low2, high2))).toBe(overlaps || touches);
    }),
  );
});

it('families have nothing in common', () => {
  const span = spanOfCidr({ address: ipFromValue('IPv4', 0n), prefixLength: 0 });
  expect(spanContains(span, ipFromValue('IPv6', 5n))).toBe(false);
  expect(spansOverlap(span, { ...span, family: 'IPv6' })).toBe(false);
});
