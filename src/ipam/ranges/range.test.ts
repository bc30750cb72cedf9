import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatCidr, formatIp, type IpFamily, ipFromValue, ipValue, networkOf } from '../../core/index.ts';
import { formatRangeSet, parseRange, parseRangeSets, type RangeText } from './range.ts';

describe('parseRange', () => {
  it.each<[RangeText, string, string]>([
    [{ subnet: '10.244.1.0/24' }, '10.244.1.1-10.244.1.254', '10.244.1.1'],
    [{ subnet: '10.0.0.0/30' }, '10.0.0.1-10.0.0.2', '10.0.0.1'],
    [{ subnet: '0.0.0.0/0' }, '0.0.0.1-255.255.255.254', '0.0.0.1'],
    [{ subnet: 'fd00:10:244:1::/64' }, 'fd00:10:244:1::1-fd00:10:244:1:ffff:ffff:ffff:ffff', 'fd00:10:244:1::1'],
    [{ subnet: 'fd00::/126' }, 'fd00::1-fd00::3', 'fd00::1'],
    [
      { subnet: '10.1.0.0/16', rangeStart: '10.1.2.3', rangeEnd: '10.1.2.3', gateway: '10.9.9.9' },
      '10.1.2.3-10.1.2.3',
      '10.9.9.9',
    ],
  ])('reads %j', (text, span, gateway) => {
    const range = parseRange(text, 'r');
    expect(formatRangeSet([range])).toBe(span);
    expect(formatIp(range.gateway)).toBe(gateway);
  });

  it.each<[RangeText, string]>([
    [{ subnet: 'nonsense' }, 'Cannot use r.subnet: "nonsense" is no subnet, such as "10.244.1.0/24"'],
    [{ subnet: '10.244.1.0' }, 'Cannot use r.subnet: "10.244.1.0" is no subnet, such as "10.244.1.0/24"'],
    [
      { subnet: '10.244.1.5/24' },
      'Cannot use r.subnet "10.244.1.5/24": it has host bits set, the network is "10.244.1.0/24"',
    ],
    [
      { subnet: '10.0.0.0/31' },
      'Cannot use r.subnet "10.0.0.0/31": the subnet is too small, the longest usable prefix is /30',
    ],
    [
      { subnet: 'fd00::/127' },
      'Cannot use r.subnet "fd00::/127": the subnet is too small, the longest usable prefix is /126',
    ],
    [
      { subnet: '10.0.0.0/24', rangeStart: '10.0.1.1' },
      'Cannot use r.rangeStart "10.0.1.1": it lies outside the subnet 10.0.0.0/24',
    ],
    [
      { subnet: '10.0.0.0/24', rangeEnd: '9.255.255.255' },
      'Cannot use r.rangeEnd "9.255.255.255": it lies outside the subnet 10.0.0.0/24',
    ],
    [
      { subnet: '10.0.0.0/24', rangeStart: '10.0.0.9', rangeEnd: '10.0.0.8' },
      'Cannot use r.rangeStart "10.0.0.9": it lies behind the end of the range, 10.0.0.8',
    ],
    [{ subnet: '10.0.0.0/24', gateway: 'x' }, 'Cannot use r.gateway "x": it is no IP address'],
    [
      { subnet: '10.0.0.0/24', gateway: 'fd00::1' },
      'Cannot use r.gateway "fd00::1": it is no IPv4 address as its subnet is',
    ],
  ])('refuses %j', (text, message) => {
    expect(() => parseRange(text, 'r')).toThrow(expect.objectContaining({ code: 'ERR_IPAM_CONFIG', message }));
  });
});

describe('parseRangeSets', () => {
  it('keeps the order of sets and ranges', () => {
    const sets = parseRangeSets(
      [[{ subnet: '10.0.1.0/30' }, { subnet: '10.0.0.0/30' }], [{ subnet: 'fd00::/126' }]],
      'ranges',
    );
    expect(sets.map(formatRangeSet)).toEqual(['10.0.1.1-10.0.1.2,10.0.0.1-10.0.0.2', 'fd00::1-fd00::3']);
  });

  it.each<[RangeText[][], RegExp]>([
    [[[]], /ranges\[0\]: the set holds no range/],
    [[[{ subnet: '10.0.0.0/24' }, { subnet: 'fd00::/64' }]], /must be of one address family/],
    [
      [[{ subnet: '10.0.0.0/16' }, { subnet: '10.0.1.0/24' }]],
      /"10\.0\.0\.1-10\.0\.255\.254": it overlaps with 10\.0\.1\.1-/,
    ],
    [[[{ subnet: '10.0.0.0/24' }], [{ subnet: '10.0.0.0/24' }]], /overlaps/],
    [
      [
        [
          { subnet: '10.0.0.0/24', rangeEnd: '10.0.0.9' },
          { subnet: '10.0.0.0/24', rangeStart: '10.0.0.9' },
        ],
      ],
      /overlaps/,
    ],
  ])('refuses %j', (sets, message) => {
    expect(() => parseRangeSets(sets, 'ranges')).toThrow(message);
  });

  it('accepts neighbouring ranges of one subnet', () => {
    const parts = [
      { subnet: '10.0.0.0/24', rangeEnd: '10.0.0.9' },
      { subnet: '10.0.0.0/24', rangeStart: '10.0.0.10' },
    ];
    expect(parseRangeSets([parts], 'ranges')).toHaveLength(1);
  });
});

it('takes every subnet with its defaults, network < start <= end within the block', () => {
  const subnet = fc.constantFrom<IpFamily>('IPv4', 'IPv6').chain((family) => {
    const bits = family === 'IPv4' ? 32 : 128;
    return fc
      .tuple(fc.bigInt({ min: 0n, max: (1n << BigInt(bits)) - 1n }), fc.integer({ min: 0, max: bits - 2 }))
      .map(([value, prefixLength]) => ({
        address: networkOf(ipFromValue(family, value), prefixLength),
        prefixLength,
      }));
  });
  fc.assert(
    fc.property(subnet, (cidr) => {
      const range = parseRange({ subnet: formatCidr(cidr) }, 'r');
      const bits = cidr.address.family === 'IPv4' ? 32 : 128;
      const network = ipValue(cidr.address);
      const last = network + (1n << BigInt(bits - cidr.prefixLength)) - 1n;
      expect(range.span.first).toBe(network + 1n);
      expect(range.span.last).toBe(bits === 32 ? last - 1n : last);
      expect(ipValue(range.gateway)).toBe(network + 1n);
    }),
  );
});
