import { describe, expect, it } from 'vitest';
import { versionRequest } from '../flags/version-flag.ts';
import { gateMap, textList, verbosityPatterns } from './list-types.ts';
import { flushFrequency, quantity } from './logging-types.ts';
import { boolean, duration, float, int32, text, uint32 } from './scalar-types.ts';
import type { ValueType } from './value-type.ts';

const TYPES: Readonly<Record<string, ValueType<unknown>>> = {
  text,
  boolean,
  int32,
  uint32,
  float,
  duration,
  textList,
  gateMap,
  verbosityPatterns,
  flushFrequency,
  quantity,
  versionRequest,
};

describe('flag text', () => {
  it.each<[keyof typeof TYPES, string, unknown]>([
    ['text', '', ''],
    ['boolean', 'T', true],
    ['boolean', '0', false],
    ['int32', '-999', -999],
    ['int32', '0x1f', 31],
    ['int32', '017', 15],
    ['int32', '0b11', 3],
    ['int32', '-0', 0],
    ['int32', '+2147483647', 2147483647],
    ['uint32', '4294967295', 4294967295],
    ['float', '2.5', 2.5],
    ['float', '-1', -1],
    ['float', '1e2', 100],
    ['duration', '1m', 60_000],
    ['textList', '', []],
    ['textList', 'a,b', ['a', 'b']],
    ['gateMap', '', {}],
    ['gateMap', 'A=true, B = f,,', { A: true, B: false }],
    [
      'verbosityPatterns',
      'a=1,b*=10',
      [
        { filePattern: 'a', verbosity: 1 },
        { filePattern: 'b*', verbosity: 10 },
      ],
    ],
    ['flushFrequency', '7s', { ms: 7000, writtenAs: 'duration' }],
    ['quantity', '512Ki', '512Ki'],
    ['versionRequest', 'true', 'line'],
    ['versionRequest', 'false', 'none'],
    ['versionRequest', 'raw', 'raw'],
    ['versionRequest', 'v1.36.2-mine.1', 'v1.36.2-mine.1'],
  ])('of type %s: %s', (type, line, value) => {
    expect(TYPES[type]!.fromFlag(line)).toEqual(value);
    // What a FLAG line shows can be given as a flag.
    expect(TYPES[type]!.fromFlag(TYPES[type]!.toFlag(value).replace(/^\[(.*)\]$/, '$1'))).toEqual(value);
  });

  it.each([
    ['boolean', 'yes'],
    ['boolean', ''],
    ['int32', '2147483648'],
    ['int32', '1.5'],
    ['int32', '08'],
    ['int32', ''],
    ['int32', ' 1'],
    ['uint32', '-1'],
    ['float', 'NaN'],
    ['float', '1e999'],
    ['duration', '30'],
    ['gateMap', 'A'],
    ['gateMap', 'A=maybe'],
    ['verbosityPatterns', 'a'],
    ['verbosityPatterns', 'a=b'],
    ['verbosityPatterns', '=1'],
    ['flushFrequency', '5'],
    ['quantity', '1KB'],
    ['versionRequest', 'v1.35.0'],
    ['versionRequest', 'toString'],
  ])('of type %s refuses "%s"', (type, line) => {
    expect(TYPES[type]!.fromFlag(line)).toBeUndefined();
  });
});

describe('file value', () => {
  it.each<[keyof typeof TYPES, unknown]>([
    ['text', 'x'],
    ['boolean', false],
    ['int32', -1],
    ['uint32', 5],
    ['float', 0.5],
    ['duration', '1m0s'],
    ['textList', ['a']],
    ['gateMap', { A: true }],
    ['verbosityPatterns', [{ filePattern: 'a', verbosity: 2 }]],
    ['flushFrequency', 5_000_000_000],
    ['flushFrequency', '5s'],
    ['quantity', '1M'],
  ])('of type %s is written as it was read: %j', (type, raw) => {
    const value = TYPES[type]!.fromFile(raw);
    expect(value).toBeDefined();
    expect(TYPES[type]!.toFile(value)).toEqual(raw);
  });

  it.each<[keyof typeof TYPES, unknown]>([
    ['text', 1],
    ['text', true],
    ['boolean', 'true'],
    ['boolean', 1],
    ['int32', '1'],
    ['int32', 1.5],
    ['int32', 2 ** 31],
    ['uint32', -1],
    ['float', '1'],
    ['float', Number.NaN],
    ['duration', 30],
    ['duration', '30'],
    ['textList', 'a'],
    ['textList', [1]],
    ['gateMap', ['A']],
    ['gateMap', { A: 'true' }],
    ['verbosityPatterns', [{ filePattern: 'a' }]],
    ['verbosityPatterns', [null]],
    ['flushFrequency', 1.5],
    ['quantity', {}],
  ])('of type %s is refused: %j', (type, raw) => {
    expect(TYPES[type]!.fromFile(raw)).toBeUndefined();
  });
});

it.each([
  ['0', true],
  ['0Ki', true],
  ['0.0', true],
  ['10', false],
  ['1e3', false],
  ['0e3', true],
])('a size of %s is zero: %s', (size, zero) => {
  expect(quantity.isZero(size)).toBe(zero);
});
