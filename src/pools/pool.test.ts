import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Cidr, parseCidr } from '../core/index.ts';
import { blockName, nodeHash } from './block-name.ts';
import { blockAt, blocksTouched, parsePools } from './pool.ts';
import { TakenBlocks } from './taken-blocks.ts';

const pool = (cidr: string, blockSize?: number) =>
  parsePools([{ cidr, ...(blockSize !== undefined && { blockSize }) }])[0]!;

describe('pools', () => {
  it('have blocks of 64 addresses unless they say otherwise', () => {
    const pools = parsePools([
      { cidr: '10.244.0.0/16' },
      { cidr: 'fd00:10::/112' },
      { cidr: '10.9.0.0/24', blockSize: 28 },
    ]);
    expect(pools).toMatchObject([
      { family: 'IPv4', name: '10.244.0.0/16', blockSize: 26, blockCount: 1024 },
      { family: 'IPv6', name: 'fd00:10::/112', blockSize: 122, blockCount: 1024 },
      { family: 'IPv4', name: '10.9.0.0/24', blockSize: 28, blockCount: 16 },
    ]);
  });

  it('of any size are used as far as they can be counted', () => {
    const large = pool('fd00:10::/48');
    expect(large.blockCount).toBe(2 ** 20);
    expect(blockAt(large, 2 ** 20 - 1)).toBe('fd00:10::3ff:ffc0/122');
    expect(blocksTouched(large, parseCidr('fd00:10::400:0/122'))).toBeUndefined();
  });

  it.each([
    ['10.244.0.0/27', undefined, 'its block size has to be from /27 to /30, found /26'],
    ['10.244.0.0/16', 31, 'from /16 to /30, found /31'],
    ['10.244.0.0/16', 26.5, 'found /26.5'],
    ['127.0.0.0/16', undefined, 'loopback addresses are not for pods'],
    ['fe80::/64', undefined, 'link-local addresses are not for pods'],
    ['::1:0/112', undefined, 'addresses that begin with "::" are not for pods'],
    ['10.244.0.0', undefined, 'Cannot read "10.244.0.0" as a CIDR'],
  ])('%s with blocks of /%s cannot be', (cidr, blockSize, message) => {
    expect(() => pool(cidr, blockSize)).toThrow(message);
  });

  it('do not overlap', () => {
    expect(() => parsePools([{ cidr: '10.244.0.0/16' }, { cidr: '10.244.128.0/17' }])).toThrow(
      'Cannot use the pool of pod addresses "10.244.128.0/17": it overlaps the pool "10.244.0.0/16"',
    );
  });
});

describe('names', () => {
  it('of blocks are those of objects, and no two are the same', () => {
    const cidrs = ['10.244.0.64/26', 'fd00:10::/122', 'fd00:10:0:0:1::/122', 'fd00::10:0/122', 'a:b:c:d:e:f:1:0/122'];
    const names = cidrs.map(blockName);
    expect(names.slice(0, 2)).toEqual(['10-244-0-64-26', 'fd00-10---122']);
    expect(new Set(names).size).toBe(cidrs.length);
    for (const name of names) expect(name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
  });

  it('of nodes fit into a label', () => expect(nodeHash('n'.repeat(253))).toMatch(/^[0-9a-f]{32}$/));
});

describe('taken blocks', () => {
  const none = () => false;

  it('are all found, each once, in an order of the node’s own', () => {
    fc.assert(
      fc.property(fc.integer({ min: 16, max: 26 }), fc.string({ minLength: 1 }), (prefixLength, node) => {
        const taken = new TakenBlocks(pool(`10.244.0.0/${prefixLength}`));
        const found = new Set<string>();
        for (let cidr = taken.findFree(node, none); cidr; cidr = taken.findFree(node, none)) {
          found.add(cidr);
          taken.take(parseCidr(cidr));
        }
        expect(found.size).toBe(taken.pool.blockCount);
        expect(taken.free).toBe(0);
      }),
      { numRuns: 30 },
    );
  });

  it('are looked for where other nodes do not look', () => {
    const taken = new TakenBlocks(pool('10.244.0.0/16'));
    const first = Array.from({ length: 100 }, (_, index) => taken.findFree(`node-${index}`, none));
    expect(new Set(first).size).toBeGreaterThan(80);
    expect(taken.findFree('node-1', none)).toBe(first[1]);
    expect(taken.findFree('node-1', (cidr) => cidr === first[1])).not.toBe(first[1]);
  });

  it('count ranges of any size, and forget them again', () => {
    const sizes = fc.record({
      prefixLength: fc.integer({ min: 20, max: 32 }),
      at: fc.integer({ min: 0, max: 2 ** 10 }),
    });
    fc.assert(
      fc.property(fc.array(sizes, { maxLength: 12 }), (ranges) => {
        const taken = new TakenBlocks(pool('10.244.0.0/22', 26));
        const cidrs: Cidr[] = ranges.map(({ prefixLength, at }) =>
          parseCidr(`10.244.${at >> 8}.${at & 255}/${prefixLength}`),
        );
        for (const cidr of cidrs) taken.take(cidr);
        const isTouched = (index: number) =>
          cidrs.some((cidr) => {
            const touched = blocksTouched(taken.pool, cidr);
            return touched && touched.first <= index && index <= touched.last;
          });
        const free = Array.from({ length: 16 }, (_, index) => index).filter((index) => !isTouched(index));
        expect(taken.free).toBe(free.length);
        for (const cidr of cidrs) taken.giveBack(cidr);
        expect(taken.free).toBe(16);
      }),
    );
  });

  it('are alone only if no other range has an address of them', () => {
    const taken = new TakenBlocks(pool('10.244.0.0/16'));
    const block = parseCidr('10.244.0.64/26');
    taken.take(block);
    expect(taken.isAlone(block)).toBe(true);
    for (const other of ['10.244.0.64/26', '10.244.0.0/24', '10.244.0.127/32']) {
      taken.take(parseCidr(other));
      expect(taken.isAlone(block)).toBe(false);
      taken.giveBack(parseCidr(other));
    }
    taken.take(parseCidr('10.244.0.128/26'));
    expect(taken.isAlone(block)).toBe(true);
    expect(taken.isAlone(parseCidr('10.245.0.0/26'))).toBe(false);
  });
});
