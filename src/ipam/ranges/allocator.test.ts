import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatIp, type IpAddress, ipFromValue, ipValue, parseIp } from '../../core/index.ts';
import { AddressSet, nextFreeAddress, rangeOf } from './allocator.ts';
import { parseRangeSets, type RangeSet, type RangeText } from './range.ts';

const setOf = (...ranges: RangeText[]): RangeSet => parseRangeSets([ranges], 'ranges')[0]!;

function next(set: RangeSet, last: string | undefined, taken: string[] = []): string {
  const lastReserved = last === undefined ? undefined : parseIp(last);
  return formatIp(nextFreeAddress(set, { lastReserved, taken: new AddressSet(taken.map(parseIp)) }).address);
}

describe('nextFreeAddress', () => {
  const small = setOf({ subnet: '10.0.0.0/29' });

  it('begins at the start of the set, skipping the gateway', () => {
    expect(next(small, undefined)).toBe('10.0.0.2');
  });

  it('goes on behind the address handed out last, although lower ones are free', () => {
    expect(next(small, '10.0.0.4')).toBe('10.0.0.5');
  });

  it('goes round at the end', () => {
    expect(next(small, '10.0.0.6')).toBe('10.0.0.2');
  });

  it('begins anew when the last address lies outside the set', () => {
    expect(next(small, '192.168.0.1')).toBe('10.0.0.2');
    expect(next(small, 'fd00::1')).toBe('10.0.0.2');
  });

  it('hands the last address out again when no other is free', () => {
    expect(next(small, '10.0.0.4', ['10.0.0.2', '10.0.0.3', '10.0.0.5', '10.0.0.6'])).toBe('10.0.0.4');
  });

  it('never hands out network and broadcast addresses, even if the range names them', () => {
    const whole = setOf({ subnet: '10.0.0.0/30', rangeStart: '10.0.0.0', rangeEnd: '10.0.0.3' });
    expect(next(whole, undefined)).toBe('10.0.0.2');
    expect(() => next(whole, undefined, ['10.0.0.2'])).toThrow(/no IP addresses available/);
  });

  it('hands out the last IPv6 address of a subnet', () => {
    expect(next(setOf({ subnet: 'fd00::/126' }), 'fd00::2')).toBe('fd00::3');
  });

  it('crosses from range to range', () => {
    const two = setOf({ subnet: '10.0.0.0/30' }, { subnet: '10.0.9.0/30', gateway: '10.0.9.2' });
    expect(next(two, '10.0.0.2')).toBe('10.0.9.1');
    expect(next(two, '10.0.9.1')).toBe('10.0.0.2');
  });

  it('says what is full, in words operators search for', () => {
    const taken = ['10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6', '172.16.0.1'];
    expect(() => next(small, undefined, taken)).toThrow(
      expect.objectContaining({
        code: 'ERR_IPAM_EXHAUSTED',
        message:
          'Cannot reserve an address: no IP addresses available in range set: 10.0.0.1-10.0.0.6, 5 in use and 10.0.0.1 kept for the gateway; enlarge the range or look for leaked reservations',
      }),
    );
  });

  it('is quick in a range of 2^64 addresses', () => {
    const wide = setOf({ subnet: 'fd00::/64' });
    expect(next(wide, 'fd00::ffff:ffff:ffff:fffe')).toBe('fd00::ffff:ffff:ffff:ffff');
    expect(next(wide, 'fd00::ffff:ffff:ffff:ffff')).toBe('fd00::2');
  });
});

/** One to three disjoint small ranges, a set of taken addresses among them and a last reserved one. */
const situations = fc
  .tuple(
    fc.constantFrom<'IPv4' | 'IPv6'>('IPv4', 'IPv6'),
    fc.array(fc.record({ from: fc.nat(15), length: fc.nat(15), gateway: fc.nat(15) }), { minLength: 1, maxLength: 3 }),
    fc.uniqueArray(fc.nat(47)),
    fc.option(fc.nat(60)),
  )
  .map(([family, shapes, taken, last]) => {
    const at = (i: number): IpAddress =>
      family === 'IPv4'
        ? ipFromValue(family, 0x0a000000n + BigInt(i))
        : ipFromValue(family, (0xfd00n << 112n) + BigInt(i));
    const set = setOf(
      ...shapes.map(({ from, length, gateway }, i) => ({
        subnet: `${formatIp(at(i * 16))}/${family === 'IPv4' ? 28 : 124}`,
        rangeStart: formatIp(at(i * 16 + from)),
        rangeEnd: formatIp(at(i * 16 + Math.min(15, from + length))),
        gateway: formatIp(at(i * 16 + gateway)),
      })),
    );
    return { set, taken: taken.map(at), lastReserved: last === null ? undefined : at(last) };
  });

/** All usable addresses in the order of the round, by listing them: what the allocator must agree with. */
function roundOf(set: RangeSet, lastReserved: IpAddress | undefined): IpAddress[] {
  const all: IpAddress[] = [];
  for (const { family, span } of set) {
    for (let v = span.first; v <= span.last; v++) all.push(ipFromValue(family, v));
  }
  const start = lastReserved ? all.findIndex((ip) => ipValue(ip) === ipValue(lastReserved)) + 1 : 0;
  const usable = (ip: IpAddress) =>
    !set.some(({ gateway }) => ipValue(gateway) === ipValue(ip)) &&
    ipValue(ip) % 16n !== 0n &&
    (ip.family === 'IPv6' || ipValue(ip) % 16n !== 15n);
  return [...all.slice(start), ...all.slice(0, start)].filter(usable);
}

it('chooses the first free address of the round, or says that there is none', () => {
  fc.assert(
    fc.property(situations, ({ set, taken, lastReserved }) => {
      const takenSet = new AddressSet(taken);
      const expected = roundOf(set, lastReserved).find((ip) => !takenSet.has(ip));
      const choose = () => nextFreeAddress(set, { lastReserved, taken: takenSet });
      if (!expected) {
        expect(choose).toThrow(expect.objectContaining({ code: 'ERR_IPAM_EXHAUSTED' }));
        return;
      }
      const { address, range } = choose();
      expect(formatIp(address)).toBe(formatIp(expected));
      expect(range).toBe(rangeOf(set, address));
    }),
    { numRuns: 500 },
  );
});

it('hands out every usable address exactly once before it is exhausted', () => {
  fc.assert(
    fc.property(situations, ({ set, lastReserved: start }) => {
      const taken = new AddressSet();
      const given: string[] = [];
      let lastReserved = start;
      const usable = roundOf(set, start).map(formatIp);
      for (let i = 0; i < usable.length; i++) {
        const { address } = nextFreeAddress(set, { lastReserved, taken });
        taken.add(address);
        given.push(formatIp(address));
        lastReserved = address;
      }
      expect(given).toEqual(usable);
      expect(() => nextFreeAddress(set, { lastReserved, taken })).toThrow(
        expect.objectContaining({ facts: expect.objectContaining({ inUse: usable.length }) }),
      );
    }),
  );
});
