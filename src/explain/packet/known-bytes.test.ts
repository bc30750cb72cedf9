import fc from 'fast-check';
import { expect, it } from 'vitest';
import { KnownBytes } from './known-bytes.ts';

const LENGTH = 4;
const bytes = fc.uint8Array({ minLength: LENGTH, maxLength: LENGTH });

it('never says of what it does not know that it is so or not so', () => {
  fc.assert(
    fc.property(bytes, bytes, bytes, bytes, (value, mask, other, filler) => {
      const known = KnownBytes.partly(value, mask);
      // Two values that agree in all bits that are known.
      const both = [value, value.map((byte, index) => (byte & mask[index]!) | (filler[index]! & ~mask[index]!))];
      for (const possible of both) {
        const equal = possible.every((byte, index) => byte === other[index]);
        expect([equal, undefined]).toContain(known.equals(other));
        const order = Math.sign(Buffer.compare(possible, other));
        const told = known.compare(other);
        expect([order, undefined]).toContain(told === undefined ? undefined : Math.sign(told));
      }
    }),
  );
});

it('knows what a mask leaves of it, whatever it takes away', () => {
  fc.assert(
    fc.property(bytes, bytes, bytes, bytes, (value, known, mask, xor) => {
      const result = KnownBytes.partly(value, known).masked(mask, xor);
      expect(result.equals(value.map((byte, index) => (byte & mask[index]!) ^ xor[index]!))).not.toBe(false);
      const decides = mask.every((bits, index) => (bits & ~known[index]! & 0xff) === 0);
      expect(result.isKnown).toBe(decides);
    }),
  );
});

it('turns the bytes of each integer', () => {
  const turned = KnownBytes.of(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)).reversed(4);
  expect(turned.equals(Uint8Array.of(4, 3, 2, 1, 8, 7, 6, 5))).toBe(true);
});

it('does not know what lies behind its end', () => {
  const part = KnownBytes.of(Uint8Array.of(1, 2)).slice(1, 2);
  expect(part.equals(Uint8Array.of(2, 0))).toBeUndefined();
  expect(part.equals(Uint8Array.of(3, 0))).toBe(false);
});

it('knows of two what is the same in both', () => {
  fc.assert(
    fc.property(bytes, bytes, bytes, bytes, (value, known, other, otherKnown) => {
      const common = KnownBytes.partly(value, known).common(KnownBytes.partly(other, otherKnown));
      // Either may be what is there.
      expect(common.equals(value)).not.toBe(false);
      expect(common.equals(other)).not.toBe(false);
      expect([...common.known]).toEqual(
        [...known].map((bits, index) => bits & otherKnown[index]! & ~(value[index]! ^ other[index]!)),
      );
    }),
  );
});
