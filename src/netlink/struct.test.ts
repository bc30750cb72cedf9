import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteWriter } from '../core/index.ts';
import { integerSize } from './integer.ts';
import { type Struct, struct } from './struct.ts';
import { ifaddrmsg } from './uapi/if-addr.ts';
import { ndmsg } from './uapi/neighbour.ts';
import { nlmsgerr, nlmsghdr, sockaddr_nl } from './uapi/netlink.ts';
import { ifinfomsg, rtmsg } from './uapi/rtnetlink.ts';

const sample = struct('sample', 20, {
  one: ['u8', 0],
  two: ['u16', 2],
  three: ['s32', 4],
  four: ['be16', 8],
  five: ['be32', 12],
  six: ['u32', 16],
});

describe('struct', () => {
  it('puts every type at its offset and zeroes the gaps', () => {
    const writer = new ByteWriter();
    writer.u8(0xee);
    sample.encode(writer, { one: 1, two: 0x0203, three: -2, four: 0x0405, five: 0x06070809, six: 0xffff_fffe });
    expect(Buffer.from(writer.written()).toString('hex')).toBe('ee' + '01000302feffffff04050000' + '06070809feffffff');
    expect(sample.decode(writer.written(), 1)).toEqual({
      one: 1,
      two: 0x0203,
      three: -2,
      four: 0x0405,
      five: 0x06070809,
      six: 0xffff_fffe,
    });
  });

  it.each([
    ['one', 256],
    ['two', -1],
    ['three', 0x8000_0000],
    ['four', 65536],
    ['five', Number.NaN],
    ['six', 2 ** 32],
  ])('refuses %s = %d', (field, value) => {
    expect(() => sample.encode(new ByteWriter(), { [field]: value })).toThrow(
      expect.objectContaining({ code: 'ERR_ENCODE', message: expect.stringContaining(`sample.${field}`) }),
    );
  });

  it('gives a value or ERR_NETLINK_DECODE for any bytes at any offset', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(60), (bytes, offset) => {
        if (bytes.length - offset >= sample.size) expect(Object.keys(sample.decode(bytes, offset))).toHaveLength(6);
        else
          expect(() => sample.decode(bytes, offset)).toThrow(expect.objectContaining({ code: 'ERR_NETLINK_DECODE' }));
      }),
    );
  });
});

describe('declared structs', () => {
  // sizeof of the C headers.
  it.each<[Struct, number]>([
    [sockaddr_nl, 12],
    [nlmsghdr, 16],
    [nlmsgerr, 4],
    [ifinfomsg, 16],
    [ifaddrmsg, 8],
    [rtmsg, 12],
    [ndmsg, 12],
  ])('$name has the right size, ascending fields and no overlap', (declared, size) => {
    expect(declared.size).toBe(size);
    let end = 0;
    for (const [type, offset] of Object.values(declared.fields)) {
      expect(offset).toBeGreaterThanOrEqual(end);
      expect(offset % integerSize(type)).toBe(0);
      end = offset + integerSize(type);
    }
    expect(end).toBeLessThanOrEqual(size);
  });
});
