import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../core/index.ts';
import { spanOf } from './address-span.ts';
import { type Claimant, Claims, type Span } from './claims.ts';

const claimant = (name: string, createdAt: number, ...cidrs: string[]): Claimant => {
  const spans: Span[] = [];
  const one = { name, node: name, createdAt, spans };
  spans.push(...cidrs.map((cidr) => spanOf(parseCidr(cidr), 'pod CIDR', one)));
  return one;
};

const namesOf = (claimants: Iterable<Claimant>) => Array.from(claimants, ({ name }) => name);

const firstOf = ({ bytes }: Span) => Buffer.from(bytes).readUInt32BE(0);
const lastOf = (span: Span) => firstOf(span) + 2 ** (32 - span.prefixLength) - 1;

/** The definition: one after the other by age, each gets what none before it has. */
function acceptedOf(claimants: readonly Claimant[], reserved: readonly Span[]): string[] {
  const sorted = [...claimants].sort((a, b) => a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1));
  const held: Span[] = [...reserved];
  const accepted: string[] = [];
  for (const { name, spans } of sorted) {
    const free = (span: Span) => held.every((other) => lastOf(span) < firstOf(other) || lastOf(other) < firstOf(span));
    if (!spans.every(free)) continue;
    held.push(...spans);
    accepted.push(name);
  }
  return accepted.sort();
}

describe('claims', () => {
  it('give the oldest what several want, and say why to the others', () => {
    const claims = new Claims();
    const [young, old] = [claimant('young', 2, '10.1.0.0/16'), claimant('old', 1, '10.1.2.0/24')];
    claims.set(young);
    expect(claims.refusalOf(young)).toBeUndefined();
    expect(claims.set(old)).toEqual([old, young]);
    expect(claims.refusalOf(young)).toBe(
      'its pod CIDR 10.1.0.0/16 overlaps the pod CIDR 10.1.2.0/24 of Node "old", which is older',
    );
    expect(claims.remove(old)).toEqual([young]);
    expect(claims.refusalOf(young)).toBeUndefined();
  });

  it('of two that are as old go by the name', () => {
    const claims = new Claims();
    const [a, b] = [claimant('a', 1, '10.1.0.0/16'), claimant('b', 1, '10.1.0.0/16')];
    claims.set(b);
    claims.set(a);
    expect(claims.refusalOf(b)).toBe(
      'its pod CIDR 10.1.0.0/16 is also that of Node "a", which is as old and comes first by name',
    );
  });

  it('of somebody refused stand in nobody’s way', () => {
    const claims = new Claims();
    const oldest = claimant('a', 1, '10.1.0.0/24');
    claims.set(oldest);
    claims.set(claimant('b', 2, '10.1.0.0/24', '10.2.0.0/24'));
    claims.set(claimant('c', 3, '10.2.0.0/24'));
    expect(namesOf(claims.refused())).toEqual(['b']);
    claims.remove(oldest);
    expect(namesOf(claims.refused())).toEqual(['c']);
  });

  it('are no one’s where it is reserved', () => {
    const claims = new Claims();
    const one = claimant('a', 1, '10.96.1.0/24');
    claims.set(one);
    claims.reserve([spanOf(parseCidr('10.96.0.0/12'), 'Service range')]);
    expect(claims.refusalOf(one)).toBe('its pod CIDR 10.96.1.0/24 overlaps the Service range 10.96.0.0/12');
  });

  it('are decided as if all had come at once, in whatever order they come and go', () => {
    const cidr = fc.tuple(fc.nat(7), fc.constantFrom(28, 29, 30)).map(([n, length]) => `10.0.0.${n * 4}/${length}`);
    const step = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      createdAt: fc.constantFrom(1, 2, 3, Number.POSITIVE_INFINITY),
      cidr,
      what: fc.constantFrom('set', 'set', 'set', 'remove', 'reserve'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const claims = new Claims();
        const present = new Map<string, Claimant>();
        let reserved: Span[] = [];
        let accepted = new Set<string>();
        for (const { name, createdAt, cidr, what } of steps) {
          const before = present.get(name);
          let decided: readonly Claimant[] = [];
          if (what === 'reserve') {
            reserved = [spanOf(parseCidr(cidr), 'range')];
            decided = claims.reserve(reserved);
          } else if (what === 'remove') {
            present.delete(name);
            if (before) decided = claims.remove(before);
          } else {
            const claiming = claimant(name, createdAt, cidr);
            present.set(name, claiming);
            decided = claims.set(claiming, before);
          }
          const now = new Set(namesOf([...present.values()].filter((one) => claims.refusalOf(one) === undefined)));
          expect([...now].sort()).toEqual(acceptedOf([...present.values()], reserved));
          const changed = [...present.keys()].filter((one) => one !== name && now.has(one) !== accepted.has(one));
          expect(namesOf(decided)).toEqual(expect.arrayContaining(changed));
          accepted = now;
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('cost the same beside ten others and beside five thousand', () => {
    const decisions = (count: number) => {
      const claims = new Claims();
      for (let n = 0; n < count; n++) claims.set(claimant(`n${n}`, n, `10.${n >> 8}.${n & 255}.0/24`));
      return claims.set(claimant('one-more', count, '10.200.0.0/24')).length;
    };
    expect([decisions(10), decisions(5000)]).toEqual([1, 1]);
  });
});
