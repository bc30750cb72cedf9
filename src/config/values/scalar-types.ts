import { formatDuration, parseDuration } from './duration.ts';
import type { ValueType } from './value-type.ts';

export const text: ValueType<string> = {
  placeholder: 'text',
  expected: 'text',
  zero: '',
  isZero: (value) => value === '',
  fromFile: (raw) => (typeof raw === 'string' ? raw : undefined),
  toFile: (value) => value,
  fromFlag: (value) => value,
  toFlag: (value) => value,
};

/** The words of Go's strconv.ParseBool. */
const BOOLEAN_WORDS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((word) => [word, false] as const),
]);

export const boolean: ValueType<boolean> = {
  placeholder: 'true|false',
  expected: 'true or false',
  zero: false,
  isZero: (value) => !value,
  fromFile: (raw) => (typeof raw === 'boolean' ? raw : undefined),
  toFile: (value) => value,
  fromFlag: (word) => BOOLEAN_WORDS.get(word),
  toFlag: String,
};

function integer(min: number, max: number): ValueType<number> {
  const inRange = (value: number): number | undefined =>
    Number.isInteger(value) && value >= min && value <= max ? value : undefined;
  return {
    placeholder: 'number',
    expected: `a whole number from ${min} to ${max}`,
    zero: 0,
    isZero: (value) => value === 0,
    fromFile: (raw) => (typeof raw === 'number' ? inRange(raw) : undefined),
    toFile: (value) => value,
    fromFlag: (digits) => inRange(parseGoInteger(digits)),
    toFlag: String,
  };
}

export const int32 = integer(-(2 ** 31), 2 ** 31 - 1);
export const uint32 = integer(0, 2 ** 32 - 1);

/** Of TCP; 0 switches a server off. */
export const port: ValueType<number> = { ...integer(0, 65_535), expected: 'a port from 0 to 65535' };

/** Where an API server is: http where no scheme is named, as client-go takes it. Empty: not given. */
export const serverUrl: ValueType<string> = {
  ...text,
  placeholder: 'url',
  expected: 'the http or https URL of an API server, such as https://192.0.2.1:6443',
  fromFlag: (value) => (value === '' || isServerUrl(value) ? value : undefined),
};

function isServerUrl(value: string): boolean {
  const url = value.includes('://') ? value : `http://${value}`;
  return /^https?:/.test(url) && URL.canParse(url);
}

/** A number with or without fraction. */
export const float: ValueType<number> = {
  placeholder: 'number',
  expected: 'a number',
  zero: 0,
  isZero: (value) => value === 0,
  fromFile: (raw) => (typeof raw === 'number' && Number.isFinite(raw) ? raw : undefined),
  toFile: (value) => value,
  fromFlag: (digits) => (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(digits) ? finite(Number(digits)) : undefined),
  toFlag: String,
};

function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined;
}

/** Milliseconds inside, Go's notation outside. In the file it is always text: a bare number would not say its unit. */
export const duration: ValueType<number> = {
  placeholder: 'duration',
  expected: 'a duration such as 500ms, 30s or 1m30s',
  zero: 0,
  isZero: (value) => value === 0,
  fromFile: (raw) => (typeof raw === 'string' ? parseDuration(raw) : undefined),
  toFile: formatDuration,
  fromFlag: parseDuration,
  toFlag: formatDuration,
};

/** As Go's strconv.ParseInt with base 0: `0x1f`, `0b11`, `0o17` and also `017` are other bases. NaN if it is none of these. */
function parseGoInteger(digits: string): number {
  const [, sign, magnitude] = /^([+-]?)(0x[\da-f]+|0b[01]+|0o?[0-7]+|[1-9]\d*|0)$/i.exec(digits) ?? [];
  if (magnitude === undefined) return Number.NaN;
  const value = Number(magnitude.replace(/^0(?=\d)/, '0o'));
  return sign === '-' && value !== 0 ? -value : value;
}
