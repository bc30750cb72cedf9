import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createdAtOf } from '../../../kube/index.ts';
import { compareClaims, type DestinationClaim, DestinationOwners } from './destination-owners.ts';

const claim = fc.record<DestinationClaim>({
  destination: fc.constantFrom('a', 'b'),
  kind: fc.constantFrom('clusterIp', 'loadBalancerVip', 'externalIp', 'nodePort'),
  createdAt: fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
  serviceName: fc.constantFrom('x/a', 'x/b', 'y/a'),
  portKey: fc.constantFrom('p', 'q'),
});

describe('the order of claims', () => {
  it('is total', () => {
    fc.assert(
      fc.property(claim, claim, claim, (a, b, c) => {
        expect(Math.sign(compareClaims(a, b)) + Math.sign(compareClaims(b, a))).toBe(0);
        if (compareClaims(a, b) <= 0 && compareClaims(b, c) <= 0) expect(compareClaims(a, c)).toBeLessThanOrEqual(0);
      }),
    );
  });

  it.each<[string, Partial<DestinationClaim>, Partial<DestinationClaim>]>([
    ['a ClusterIP before a VIP', { kind: 'clusterIp', createdAt: 9, serviceName: 'z/z' }, { kind: 'loadBalancerVip' }],
    ['a VIP before an external IP', { kind: 'loadBalancerVip', createdAt: 9 }, { kind: 'externalIp' }],
    ['the older Service', { createdAt: 1, serviceName: 'z/z' }, { createdAt: 2 }],
    ['a Service whose age is known', { createdAt: 9, serviceName: 'z/z' }, { createdAt: createdAtOf(undefined) }],
    ['the name that sorts first', { serviceName: 'a/a' }, { serviceName: 'a/b' }],
  ])('puts %s', (_, first, second) => {
    const base: DestinationClaim = {
      destination: 'a',
      kind: 'externalIp',
      createdAt: 5,
      serviceName: 'b/b',
      portKey: 'p',
    };
    expect(compareClaims({ ...base, ...first }, { ...base, ...second })).toBeLessThan(0);
  });

  it('takes a time nobody can read for none', () => {
    expect(createdAtOf('yesterday')).toBe(Number.POSITIVE_INFINITY);
    expect(createdAtOf('2026-01-01T00:00:00Z')).toBe(Date.UTC(2026, 0, 1));
  });
});

describe('the owner of a destination', () => {
  it('is the first of those who claim it at the moment, and whoever gains or loses is named', () => {
    const names = ['s/0', 's/1', 's/2', 's/3', 's/4'];
    const wish = fc.record({
      name: fc.constantFrom(...names),
      destinations: fc.uniqueArray(fc.constantFrom('a', 'b', 'c')),
      kind: fc.constantFrom<DestinationClaim['kind'][]>('clusterIp', 'loadBalancerVip', 'externalIp'),
      createdAt: fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
    });
    fc.assert(
      fc.property(fc.array(wish, { maxLength: 30 }), (wishes) => {
        const owners = new DestinationOwners();
        const present = new Map<string, readonly DestinationClaim[]>();
        for (const { name, destinations, kind, createdAt } of wishes) {
          const before = new Map(['a', 'b', 'c'].map((text) => [text, owners.ownerOf(text)]));
          const claims = destinations.map((destination) => {
            return { destination, kind, createdAt, serviceName: name, portKey: `${name}:/TCP` };
          });
          const affected = new Set<string>();
          owners.replace(present.get(name) ?? [], claims, affected);
          present.set(name, claims);
          for (const [who, theirs] of present) {
            const isOwner = ({ destination }: DestinationClaim) => owners.ownerOf(destination)?.serviceName === who;
            expect(owners.hasAll(theirs)).toBe(theirs.every(isOwner));
          }
          for (const [destination, former] of before) {
            const all = [...present.values()].flat().filter((one) => one.destination === destination);
            const owner = owners.ownerOf(destination);
            expect(owner).toEqual(all.sort(compareClaims)[0]);
            if (owner?.serviceName === former?.serviceName) continue;
            if (owner) expect(affected).toContain(owner.serviceName);
            if (former) expect(affected).toContain(former.serviceName);
          }
        }
      }),
    );
  });

  it('costs little to change among 20,000 who want the same, and names few of them', () => {
    const owners = new DestinationOwners();
    const claims = Array.from({ length: 20_000 }, (_, n): DestinationClaim => {
      const serviceName = `s/${String(n).padStart(5, '0')}`;
      return { destination: 'a', kind: 'externalIp', createdAt: 1, serviceName, portKey: `${serviceName}:/TCP` };
    });
    // In the worst order: each one is the first for a moment.
    for (const one of claims.toReversed()) owners.replace([], [one], new Set());
    let named = 0;
    for (const one of claims) {
      const affected = new Set<string>();
      expect(owners.ownerOf('a')).toBe(one);
      owners.replace([one], [], affected);
      named += affected.size;
    }
    expect(owners.ownerOf('a')).toBeUndefined();
    expect(named).toBeLessThan(20_000 * 12);
  }, 60_000);
});
