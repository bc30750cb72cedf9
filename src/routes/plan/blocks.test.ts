import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseCidr } from '../../core/index.ts';
import { type Block, DisjointBlocks } from './blocks.ts';

interface TestBlock extends Block {
  readonly from: number;
  readonly to: number;
}

const blockOf = (n: number, prefixLength: number): TestBlock => {
  const { bytes } = parseCidr(`10.${n >> 8}.${n & 255}.0/${prefixLength}`).address;
  const from = Buffer.from(bytes).readUInt32BE(0);
  return { bytes, prefixLength, from, to: from + 2 ** (32 - prefixLength) - 1 };
};

const byPlace = (a: TestBlock, b: TestBlock) => a.from - b.from;

it('hundreds of blocks are found, taken in and taken out as in a plain list', () => {
  const step = fc.tuple(fc.nat(600), fc.constantFrom(24, 24, 24, 23, 20), fc.boolean());
  fc.assert(
    fc.property(fc.array(step, { minLength: 300, maxLength: 600, size: 'max' }), (steps) => {
      const blocks = new DisjointBlocks<TestBlock>();
      let plain: TestBlock[] = [];
      for (const [n, prefixLength, isRemoval] of steps) {
        const block = blockOf(n, prefixLength);
        const found = plain.filter(({ from, to }) => from <= block.to && block.from <= to).sort(byPlace);
        expect(blocks.overlapping(block)).toEqual(found);
        if (isRemoval && found.length > 0) {
          blocks.remove(found[0]!);
          plain = plain.filter((other) => other !== found[0]);
        } else {
          expect(blocks.add(block)).toBe(found.length === 0);
          if (found.length === 0) plain.push(block);
        }
      }
      expect(blocks.overlapping(blockOf(0, 8))).toEqual(plain.sort(byPlace));
    }),
    { numRuns: 5 },
  );
});
