import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteWriter, hashBytes, readBe16, readBe32, readU16, readU32, sameBytes } from './bytes.ts';

const hex = (writer: ByteWriter) => Buffer.from(writer.written()).toString('hex');

describe('ByteWriter', () => {
  it('writes host order by default and network order where the name says so', () => {
    const writer = new ByteWriter(0);
    writer.u8(0x01);
    writer.u16(0x0203);
    writer.u32(0x04050607);
    writer.be16(0x0809);
    writer.be32(0x0a0b0c0d);
    expect(hex(writer)).toBe('01' + '0302' + '07060504' + '0809' + '0a0b0c0d');
  });

  it('pads, terminates and overwrites', () => {
    const writer = new ByteWriter(1);
    writer.cString('é');
    writer.align(4);
    writer.align(4);
    writer.bytes(Uint8Array.of(1, 2));
    writer.zeros(2);
    writer.setU32(0, 0xdeadbeef);
    writer.setU16(4, 0xcafe);
    expect(hex(writer)).toBe('efbeadde' + 'feca0000');
  });

  it('zeroes memory that was used before', () => {
    const writer = new ByteWriter(8);
    writer.bytes(new Uint8Array(8).fill(0xff));
    writer.clear();
    writer.u8(1);
    writer.align(8);
    expect(hex(writer)).toBe('0100000000000000');
  });

  it('grows without losing a byte', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), fc.integer({ min: 0, max: 64 }), (parts, capacity) => {
        const writer = new ByteWriter(capacity);
        for (const part of parts) writer.bytes(part);
        expect(hex(writer)).toBe(Buffer.concat(parts).toString('hex'));
      }),
    );
  });
});

describe('reading', () => {
  it('gives back what was written, also with the highest bit set', () => {
    fc.assert(
      fc.property(fc.nat(0xffff), fc.integer({ min: 0, max: 0xffff_ffff }), (small, large) => {
        const writer = new ByteWriter();
        writer.u16(small);
        writer.u32(large);
        writer.be16(small);
        writer.be32(large);
        const bytes = writer.written();
        expect([readU16(bytes, 0), readU32(bytes, 2), readBe16(bytes, 6), readBe32(bytes, 8)]).toEqual([
          small,
          large,
          small,
          large,
        ]);
      }),
    );
  });
});

it('compares bytes, whatever holds them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 6 }), fc.uint8Array({ maxLength: 6 }), (a, b) => {
      expect(sameBytes(a, b)).toBe(Buffer.compare(a, b) === 0);
      expect(sameBytes(a, Buffer.from(a))).toBe(true);
      expect(hashBytes(Buffer.from(a))).toBe(hashBytes(a));
    }),
  );
  expect(sameBytes(undefined, undefined)).toBe(true);
  expect(sameBytes(new Uint8Array(0), undefined)).toBe(false);
  expect(hashBytes(Uint8Array.of(1, 2))).not.toBe(hashBytes(Uint8Array.of(2, 1)));
});
