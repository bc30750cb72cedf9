import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Attribute, AttributeWriter, readAttributes } from './attribute.ts';
import { attributeSet, encodeNest } from './attribute-set.ts';
import { NLA_F_NESTED } from './uapi/netlink.ts';

const INNER = attributeSet('INNER', { NUMBER: [1, 'be16'] });
const OUTER = attributeSet('OUTER', {
  BYTE: [1, 'u8'],
  NAME: [2, 'string'],
  TEXT: [3, 'unterminated'],
  BYTES: [4, 'bytes'],
  NEST: [5 | NLA_F_NESTED, INNER],
  SIGNED: [6, 's32'],
});

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('attributeSet', () => {
  it('writes values in the order given, padded to four bytes, and leaves out the undefined', () => {
    const bytes = encodeNest(OUTER, {
      NAME: 'ab',
      BYTE: 7,
      SIGNED: undefined,
      TEXT: 'xyz',
      BYTES: Uint8Array.of(9),
      NEST: { NUMBER: 0x0102 },
    });
    expect(hex(bytes)).toBe(
      '0700020061620000' + // NAME with its NUL
        '0500010007000000' +
        '0700030078797a00' + // TEXT without
        '0500040009000000' +
        '0c000580' + // NEST with its flag
        '0600010001020000',
    );
  });

  it('reads back what it wrote', () => {
    const text = fc.string({ unit: 'grapheme' }).filter((value) => !value.includes('\0'));
    const values = fc.record({
      BYTE: fc.nat(255),
      NAME: text,
      TEXT: text,
      BYTES: fc.uint8Array(),
      NEST: fc.record({ NUMBER: fc.nat(0xffff) }),
      SIGNED: fc.integer(),
    });
    fc.assert(
      fc.property(values, (given) => {
        const { unknown, BYTES, NEST, ...rest } = OUTER.decode(encodeNest(OUTER, given));
        expect({ ...rest, BYTES: hex(BYTES!), NUMBER: NEST!.NUMBER }).toEqual({
          BYTE: given.BYTE,
          NAME: given.NAME,
          TEXT: given.TEXT,
          SIGNED: given.SIGNED,
          BYTES: hex(given.BYTES),
          NUMBER: given.NEST.NUMBER,
        });
        expect(unknown).toEqual([]);
      }),
    );
  });

  it('takes the last of two, keeps the unknown, ignores the flag bits and a missing last padding', () => {
    const decoded = OUTER.decode(
      Buffer.from('0500010001000000' + '0500010002000000' + '0600634001020000' + '0500048003', 'hex'),
    );
    expect(decoded.BYTE).toBe(2);
    expect(hex(decoded.BYTES!)).toBe('03');
    expect(decoded.unknown.map(({ type, value }) => [type, hex(value)])).toEqual([[99, '0102']]);
  });

  it.each([
    ['050001', 'OUTER: 3 bytes are left, too few for an attribute header'],
    ['03000100', 'OUTER: the attribute at byte 0 claims 3 bytes, 4 are left'],
    ['00000100', 'OUTER: the attribute at byte 0 claims 0 bytes, 4 are left'],
    ['0800010001', 'OUTER: the attribute at byte 0 claims 8 bytes, 5 are left'],
    ['0600010001020000', 'BYTE: it has 2 bytes, expected 1'],
    ['0c00058009000100', 'OUTER: the attribute at byte 0 claims 12 bytes, 8 are left'],
    ['0900058005000100ff', 'NUMBER: it has 1 bytes, expected 2'],
  ])('refuses %s', (bytes, message) => {
    expect(() => OUTER.decode(Buffer.from(bytes, 'hex'))).toThrow(
      expect.objectContaining({ code: 'ERR_NETLINK_DECODE', message: `Cannot decode ${message}` }),
    );
  });

  it('holds an attribute of 65531 bytes and no longer one', () => {
    expect(OUTER.decode(encodeNest(OUTER, { BYTES: new Uint8Array(65531) })).BYTES).toHaveLength(65531);
    expect(() => encodeNest(OUTER, { BYTES: new Uint8Array(65532) })).toThrow(
      expect.objectContaining({ code: 'ERR_ENCODE', message: 'Cannot write 65532 bytes as BYTES: at most 65531 fit' }),
    );
  });
});

describe('readAttributes', () => {
  it('ends on any bytes, and never looks outside them', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(8), (bytes, offset) => {
        const seen: Attribute[] = [];
        try {
          for (const attribute of readAttributes(bytes, offset, 'test')) seen.push(attribute);
        } catch (error) {
          expect(error).toMatchObject({ code: 'ERR_NETLINK_DECODE' });
        }
        expect(seen.length).toBeLessThanOrEqual(bytes.length / 4);
        for (const { value } of seen) {
          expect(value.buffer).toBe(bytes.buffer);
          expect(value.byteOffset + value.length).toBeLessThanOrEqual(bytes.byteOffset + bytes.length);
        }
      }),
    );
  });
});

describe('AttributeWriter', () => {
  it('nests to any depth', () => {
    const writer = new AttributeWriter();
    const outer = writer.nest(1);
    const inner = writer.nest(2);
    writer.integer(3, 'u8', 4, 'deep');
    writer.end(inner, 'inner');
    writer.end(outer, 'outer');
    expect(hex(writer.bytes.written())).toBe('10000100' + '0c000200' + '0500030004000000');
  });
});
