import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { frame } from '../../test/fakes/fake-netlink.ts';
import { type NetlinkMessage, readMessages } from './message.ts';

const message = (payload: Uint8Array): NetlinkMessage => ({ type: 16, flags: 0x605, sequence: 7, portId: 9, payload });

describe('messages', () => {
  it('are laid out one after the other, padded to four bytes', () => {
    const datagram = frame(message(Uint8Array.of(0xaa)), message(new Uint8Array()));
    expect(Buffer.from(datagram).toString('hex')).toBe(
      '11000000' +
        '10000506' +
        '07000000' +
        '09000000' +
        'aa000000' +
        '10000000' +
        '10000506' +
        '07000000' +
        '09000000',
    );
  });

  it('are read as they were written', () => {
    const messages = fc.array(
      fc.record({
        type: fc.nat(0xffff),
        flags: fc.nat(0xffff),
        sequence: fc.integer({ min: 0, max: 0xffff_ffff }),
        portId: fc.integer({ min: 0, max: 0xffff_ffff }),
        payload: fc.uint8Array({ maxLength: 40 }),
      }),
    );
    fc.assert(
      fc.property(messages, (given) => {
        const read = [...readMessages(frame(...given))];
        expect(read.map((m) => ({ ...m, payload: [...m.payload] }))).toEqual(
          given.map((m) => ({ ...m, payload: [...m.payload] })),
        );
      }),
    );
  });

  it.each([
    ['10000000', 'datagram: 4 bytes are left, too few for a message header'],
    [`0f000000${'00'.repeat(12)}`, 'datagram: the message at byte 0 claims 15 bytes, 16 are left'],
    [`00000000${'00'.repeat(12)}`, 'datagram: the message at byte 0 claims 0 bytes, 16 are left'],
    [`11000000${'00'.repeat(12)}`, 'datagram: the message at byte 0 claims 17 bytes, 16 are left'],
    [`ffffffff${'00'.repeat(12)}`, 'datagram: the message at byte 0 claims 4294967295 bytes, 16 are left'],
    [`10000000${'00'.repeat(13)}`, 'datagram: 1 bytes are left, too few for a message header'],
  ])('that are malformed are refused: %s', (hex, text) => {
    expect(() => [...readMessages(Buffer.from(hex, 'hex'))]).toThrow(
      expect.objectContaining({ code: 'ERR_NETLINK_DECODE', message: `Cannot decode ${text}` }),
    );
  });

  it('may lack the padding of the last one', () => {
    const whole = frame(message(Uint8Array.of(1)));
    expect([...[...readMessages(whole.subarray(0, 17))][0]!.payload]).toEqual([1]);
  });

  it('end on any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (datagram) => {
        const read: NetlinkMessage[] = [];
        try {
          for (const found of readMessages(datagram)) read.push(found);
        } catch (error) {
          expect(error).toMatchObject({ code: 'ERR_NETLINK_DECODE' });
        }
        expect(read.length).toBeLessThanOrEqual(datagram.length / 16);
      }),
    );
  });
});
