import { duration } from './scalar-types.ts';
import type { ValueType } from './value-type.ts';

// Two types that only the `logging` section has.

/** A duration that the file may also give as a number of nanoseconds; it is written in the form it was read in. */
export interface FlushFrequency {
  readonly ms: number;
  readonly writtenAs: 'nanoseconds' | 'duration';
}

export const flushFrequency: ValueType<FlushFrequency> = {
  placeholder: 'duration',
  expected: 'a duration such as 5s, or a whole number of nanoseconds',
  zero: { ms: 0, writtenAs: 'duration' },
  isZero: (value) => value.ms === 0,
  fromFile(raw) {
    if (typeof raw === 'number') return Number.isInteger(raw) ? { ms: raw / 1e6, writtenAs: 'nanoseconds' } : undefined;
    const ms = duration.fromFile(raw);
    return ms === undefined ? undefined : { ms, writtenAs: 'duration' };
  },
  toFile: ({ ms, writtenAs }) => (writtenAs === 'nanoseconds' ? Math.round(ms * 1e6) : duration.toFile(ms)),
  fromFlag(line) {
    const ms = duration.fromFlag(line);
    return ms === undefined ? undefined : { ms, writtenAs: 'duration' };
  },
  toFlag: ({ ms }) => duration.toFlag(ms),
};

const QUANTITY = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+|[numkMGTPE]|[KMGTPE]i)?$/i;

/** A size in Kubernetes' notation (`512Ki`, `1M`), kept as it was written: no buffer of ours has this size. */
export const quantity: ValueType<string> = {
  placeholder: 'size',
  expected: 'a size such as 0, 512Ki or 1M',
  zero: '0',
  isZero: (value) => !/[1-9]/.test(value.replace(/[a-z].*$/i, '')),
  fromFile: (raw) => (typeof raw === 'number' || typeof raw === 'string' ? readQuantity(String(raw)) : undefined),
  toFile: (value) => value,
  fromFlag: readQuantity,
  toFlag: (value) => value,
};

function readQuantity(line: string): string | undefined {
  return QUANTITY.test(line) ? line : undefined;
}
