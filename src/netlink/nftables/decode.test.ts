import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../test/fakes/decoder-properties.ts';
import { RULE_FORMS } from '../../../test/fakes/nftables-forms.ts';
import { intervalElements } from '../../../test/fakes/nftables-intervals.ts';
import { readMessages } from '../message.ts';
import { BatchEncoder, elementAt } from './batch.ts';
import { hasDuplicates } from './duplicates.ts';
import { sameExpressions } from './expression/same-rule.ts';
import { decodeEvents } from './listening/monitor.ts';
import { ElementPacker } from './object/element-encode.ts';
import { intervalRanges } from './object/intervals.ts';
import type { NftChange, NftElement, NftObject } from './object/model.ts';
import * as decode from './object/object-decode.ts';

const T = { family: 'ip', table: 't' } as const;
const add = (object: NftObject): NftChange => ({ operation: 'add', object });

/** What goes over the wire between the begin and the end of a batch. */
function payloads(...changes: readonly NftChange[]): Uint8Array[] {
  const { bytes } = new BatchEncoder().encode(changes, 0);
  return [...readMessages(bytes)].slice(1, -1).map(({ payload }) => Uint8Array.from(payload));
}

const text = fc.string({ unit: 'grapheme', maxLength: 40 }).filter((value) => !value.includes('\0'));
const verdict = fc.oneof(
  fc.constantFrom('accept', 'drop', 'return').map((kind) => ({ kind: kind as 'accept' | 'drop' | 'return' })),
  text.filter((name) => name !== '').map((chain) => ({ kind: 'goto' as const, chain })),
);
const value = fc.uint8Array({ minLength: 1, maxLength: 64 });
const element: fc.Arbitrary<NftElement> = fc
  .record(
    {
      key: value,
      keyEnd: value,
      intervalEnd: fc.constant(true as const),
      value: fc.oneof(value, verdict),
      timeoutMs: fc.maxSafeNat(),
      expirationMs: fc.maxSafeNat(),
      comment: text,
    },
    { requiredKeys: ['key'] },
  )
  .map(({ value: held, ...rest }) => ({
    ...rest,
    ...(held instanceof Uint8Array ? { data: held } : held && { verdict: held }),
  }));

describe('decoding', () => {
  it('gives back the elements that were written, in as many messages as they need', () => {
    fc.assert(
      fc.property(fc.array(element, { maxLength: 400 }), (elements) => {
        const read = payloads(add({ kind: 'elements', ...T, set: 's', elements })).flatMap(
          (payload) => decode.decodeElementList(payload, 'ip').elements,
        );
        expect(read).toEqual(elements);
      }),
      { numRuns: 50 },
    );
  });

  it('gives back objects as they were written', () => {
    const chain = {
      kind: 'chain',
      ...T,
      name: 'c',
      comment: 'é',
      base: { type: 'nat', hook: 'input', priority: -9, policy: 'drop' },
    } as const;
    const set = {
      kind: 'set',
      ...T,
      name: 's',
      key: ['ipv6_addr', 'inet_proto', 'mark'],
      data: ['ifname'],
      flags: ['interval', 'timeout'],
      size: 9,
      timeoutMs: 5000,
      gcIntervalMs: 7,
      comment: 'a set',
    } as const;
    expect(payloads(add(chain)).map((payload) => decode.decodeChain(payload, 'ip'))).toEqual([chain]);
    expect(payloads(add(set)).map((payload) => decode.decodeSet(payload, 'ip'))).toEqual([set]);
  });

  const rules = RULE_FORMS.map(({ family = 'ip', chain, expressions }) =>
    add({ kind: 'rule', ...T, family, chain, expressions }),
  );
  const elements = add({
    kind: 'elements',
    ...T,
    set: 's',
    elements: [
      { key: Uint8Array.of(1, 2, 3, 4), data: Uint8Array.of(5), comment: 'x', timeoutMs: 4 },
      { key: Uint8Array.of(1), keyEnd: Uint8Array.of(2), verdict: { kind: 'goto', chain: 'c' } },
    ],
  });
  const set = add({ kind: 'set', ...T, name: 's', key: ['ifname'], data: 'verdict', comment: 'c' });
  const chain = add({ kind: 'chain', ...T, name: 'c', base: { type: 'filter', hook: 'input', priority: 0 } });
  const table = add({ kind: 'table', family: 'ip', name: 't', comment: 'c' });
  const counter = add({ kind: 'counter', ...T, name: 'n', packets: 1n, bytes: 2n });
  const batch = Uint8Array.from(new BatchEncoder().encode([...rules, elements, set, chain], 1).bytes);

  it.each<[string, (bytes: Uint8Array) => unknown, readonly Uint8Array[]]>([
    ['rules', (bytes) => decode.decodeRule(bytes, 'ip'), payloads(...rules)],
    ['elements', (bytes) => decode.decodeElementList(bytes, 'ip'), payloads(elements)],
    ['sets', (bytes) => decode.decodeSet(bytes, 'ip'), payloads(set)],
    ['chains', (bytes) => decode.decodeChain(bytes, 'ip') ?? {}, payloads(chain)],
    ['tables', (bytes) => decode.decodeTable(bytes, 'ip'), payloads(table)],
    ['counters', (bytes) => decode.decodeCounter(bytes, 'ip') ?? {}, payloads(counter)],
    ['events', decodeEvents, [batch]],
  ])(
    'of %s ends on any bytes with a value or a coded error',
    (_, decoder, valid) => {
      expectSafeDecoder(decoder, valid);
    },
    60_000,
  );
});

describe('encoding', () => {
  it.each([
    ['a key', [{ key: new Uint8Array(65) }]],
    ['an empty key', [{ key: new Uint8Array() }]],
    ['a comment', [{ key: Uint8Array.of(1), comment: 'é'.repeat(127) }]],
    ['a comment with a NUL', [{ key: Uint8Array.of(1), comment: 'a\0' }]],
    ['a time', [{ key: Uint8Array.of(1), timeoutMs: -1 }]],
  ])('refuses %s that does not fit', (_, elements) => {
    expect(() => new ElementPacker().pack(elements, 0, false)).toThrow(expect.objectContaining({ code: 'ERR_ENCODE' }));
  });

  it('keeps every list of elements within 16 bits, and finds an element by its place', () => {
    const elements = Array.from({ length: 5000 }, (_, i) => ({
      key: Uint8Array.of(i >> 8, i),
      comment: 'x'.repeat(i % 200),
    }));
    const { bytes, origins } = new BatchEncoder().encode([add({ kind: 'elements', ...T, set: 's', elements })], 0);
    expect(origins.length).toBeGreaterThan(5);
    for (const [index, { start, firstElement }] of origins.entries()) {
      const message = bytes.subarray(start, origins[index + 1]?.start ?? bytes.length - 20);
      const third = elements[firstElement + 2]!.key;
      const pattern = Buffer.concat([Buffer.from([6, 0, 1, 0]), third]);
      expect(elementAt(message, Buffer.from(message).indexOf(pattern))).toBe(2);
      expect(elementAt(message, 20)).toBeUndefined();
    }
  });
});

it('turns ranges into elements and back', () => {
  const ranges = fc
    .uniqueArray(fc.nat(0xffff), { minLength: 2, maxLength: 40 })
    .map((numbers) => numbers.sort((a, b) => a - b))
    .map((sorted) =>
      Array.from({ length: sorted.length >> 1 }, (_, i) => ({
        first: Uint8Array.of(sorted[2 * i]! >> 8, sorted[2 * i]!),
        last: Uint8Array.of(sorted[2 * i + 1]! >> 8, sorted[2 * i + 1]!),
      })),
    );
  fc.assert(
    fc.property(ranges, (given) => {
      expect(intervalRanges(intervalElements(given))).toEqual(given);
    }),
  );
});

it('sees whether an element is listed twice', () => {
  const keys = fc.array(
    fc.uint8Array({ minLength: 2, maxLength: 2 }).map((key) => ({ key })),
    { maxLength: 300 },
  );
  fc.assert(
    fc.property(keys, (elements) => {
      const distinct = new Set(elements.map(({ key }) => key.join())).size;
      expect(hasDuplicates(elements)).toBe(distinct < elements.length);
    }),
  );
});

it('compares rules by what they do', () => {
  const nat = { kind: 'nat', type: 'dnat', family: 'ip', address: 0 } as const;
  expect(sameExpressions([{ kind: 'counter', packets: 5n, bytes: 6n }], [{ kind: 'counter' }])).toBe(true);
  expect(sameExpressions([nat], [{ ...nat, addressMax: 0, flags: [] }])).toBe(true);
  expect(
    sameExpressions([{ ...nat, flags: ['persistent', 'random'] }], [{ ...nat, flags: ['random', 'persistent'] }]),
  ).toBe(true);
  expect(sameExpressions([{ kind: 'log' }], [{ kind: 'log', level: 4 }])).toBe(true);
  expect(sameExpressions([nat], [{ ...nat, address: 1 }])).toBe(false);
  expect(sameExpressions([nat], [nat, nat])).toBe(false);
});
