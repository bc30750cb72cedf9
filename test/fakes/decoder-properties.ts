import fc from 'fast-check';
import { expect } from 'vitest';
import { NodeplaneError } from '../../src/core/index.ts';

const RUNS = { numRuns: 2000 };

/**
 * Asserts what every wire decoder owes: a value for each of the `valid` messages, and for any other bytes, random ones and
 * bent messages, a value or an error ERR_NETLINK_DECODE, never anything else.
 */
export function expectSafeDecoder(decode: (bytes: Uint8Array) => unknown, valid: readonly Uint8Array[]): void {
  for (const message of valid) expect(decode(message)).toBeTypeOf('object');
  for (const arbitrary of [fc.uint8Array({ maxLength: 300 }), bent(valid)]) {
    fc.assert(
      fc.property(arbitrary, (bytes) => {
        try {
          expect(decode(bytes)).toBeTypeOf('object');
        } catch (error) {
          expect(error).toBeInstanceOf(NodeplaneError);
          expect(error).toMatchObject({ code: 'ERR_NETLINK_DECODE' });
        }
      }),
      RUNS,
    );
  }
}

/** A valid message with up to eight bytes changed, then cut short or continued with noise. */
function bent(messages: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  return fc
    .record({
      message: fc.constantFrom(...messages),
      changes: fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 8 }),
      keep: fc.option(fc.nat(200)),
      tail: fc.uint8Array({ maxLength: 24 }),
    })
    .map(({ message, changes, keep, tail }) => {
      const bytes = Buffer.concat([message.subarray(0, keep ?? message.length), tail]);
      if (bytes.length > 0) for (const [at, value] of changes) bytes[at % bytes.length] = value;
      return bytes;
    });
}
