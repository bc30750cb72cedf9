import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeObject } from '../../../../test/fakes/api-server/protobuf/index.ts';
import { readObject } from './envelope.ts';
import { ENDPOINT_SLICE, SERVICE } from './kinds.ts';
import { Field, messageOf, readMessage, WireError } from './message.ts';

const MESSAGE = messageOf({
  1: new Field('text', 'text'),
  2: new Field('empty', 'text', { keepsEmpty: true }),
  3: new Field('number', 'integer'),
  4: new Field('list', 'integer', { repeated: true }),
  5: new Field('map', 'map', { known: new Set(['a', 'é']) }),
  6: new Field('time', 'time'),
  7: new Field('inner', 'message', { message: messageOf({ 1: new Field('flag', 'flag', { keepsEmpty: true }) }) }),
});

const read = (...bytes: (number | string)[]) =>
  readMessage(
    MESSAGE,
    Buffer.concat(bytes.map((part) => Buffer.from(typeof part === 'string' ? part : ([part] as never)))),
  );

describe('a message', () => {
  it('is read field by field, and what is not known is passed over', () => {
    expect(read(0x0a, 2, 'é')).toEqual({ text: 'é' });
    expect(read(0x0a, 0, 0x12, 0, 0x18, 0)).toEqual({ empty: '' });
    expect(read(0x18, 0xac, 2, 0x20, 1, 0x20, 0)).toEqual({ number: 300, list: [1, 0] });
    // Of each encoding: a number, eight bytes, a text, four bytes.
    expect(read(0x78, 0xff, 0x7f, 0x79, '12345678', 0x7a, 3, 'abc', 0x7d, '1234', 0x18, 7)).toEqual({ number: 7 });
    expect(read(0x3a, 2, 0x08, 0)).toEqual({ inner: { flag: false } });
  });

  it('has of a map the keys that are known', () => {
    const entry = (key: string, value: string) =>
      `\x2a${String.fromCharCode(4 + key.length + value.length)}\x0a${String.fromCharCode(key.length)}${key}\x12${String.fromCharCode(value.length)}${value}`;
    expect(read(entry('a', '1'), entry('b', '2'))).toEqual({ map: { a: '1' } });
    // Without a value, and without a key.
    expect(read(0x2a, 3, 0x0a, 1, 'a', 0x2a, 0)).toEqual({ map: { a: '' } });
  });

  it('has times as RFC 3339, and none for one that was never set', () => {
    expect(read(0x32, 6, 0x08, 0x80, 0x92, 0xb8, 0xc3, 0x06)).toEqual({ time: '2025-07-09T06:15:28Z' });
    expect(read(0x32, 0)).toEqual({});
    // Before the year 1970, which is no time of an object: ten bytes.
    expect(read(0x32, 11, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)).toEqual({});
  });

  it.each([
    ['a text that is longer than the bytes', [0x0a, 9, 'abc'], 'longer than what it is in'],
    ['a field that is longer than its message', [0x3a, 1, 0x08, 0], 'longer than what it is in'],
    ['a number without an end', [0x18, 0xff], 'a number has no end'],
    ['a number of more than ten bytes', [0x18, ...new Array<number>(11).fill(0xff), 1], 'a number has no end'],
    ['a group', [0x7b], 'no field is encoded as 3'],
    ['a number in place of a text', [0x08, 1], 'field "text" is not encoded as its type is'],
  ] as const)('is refused with %s', (_, bytes, message) => {
    expect(() => read(...bytes)).toThrow(WireError);
    expect(() => read(...bytes)).toThrow(message);
  });

  it('is refused by a WireError, or read, whatever the bytes are', () => {
    const start = Buffer.from(
      encodeObject({
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
        addressType: 'IPv4',
        endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
      } as never),
    );
    fc.assert(
      fc.property(fc.nat(start.length - 1), fc.nat(255), fc.boolean(), (at, byte, cut) => {
        const damaged = Buffer.from(start);
        damaged[at] = byte;
        try {
          readObject(ENDPOINT_SLICE, cut ? damaged.subarray(0, at) : damaged);
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          readMessage(SERVICE, Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }),
    );
  });
});
