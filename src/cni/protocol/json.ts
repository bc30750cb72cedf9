import { type Cidr, isMapping, tryParseCidr } from '../../core/index.ts';
import { CNI_ERROR, CniError } from './errors.ts';

/** A JSON object as it came from outside. */
export type Json = Readonly<Record<string, unknown>>;

interface JsonTypes {
  readonly boolean: boolean;
  readonly string: string;
  readonly number: number;
}

/** Of a value in messages, in characters. */
const LONGEST_SHOWN = 200;

/** CNI error 7 with a sentence. */
export function invalidConfig(message: string): CniError {
  return new CniError(CNI_ERROR.INVALID_NETWORK_CONFIG, message);
}

/** CNI error 7 about the value of one key. */
export function invalidKey(path: string, value: unknown, reason: string): CniError {
  const text = JSON.stringify(value);
  const shown = text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
  return invalidConfig(`Cannot use ${path} ${shown}: ${reason}`);
}

/**
 * The value of a key of a given type; undefined when it is absent or null.
 *
 * @param path what stands before the key in messages, such as `ipam.`
 * @throws CniError 7 naming the key
 */
export function optional<T extends keyof JsonTypes>(
  raw: Json,
  key: string,
  type: T,
  path = '',
): JsonTypes[T] | undefined {
  const value = raw[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== type) throw invalidKey(`${path}${key}`, value, `it must be a ${type}`);
  return value as JsonTypes[T];
}

/** A whole number from `min` to `max`; undefined when absent. Throws CniError 7 naming the key. */
export function optionalInteger(
  raw: Json,
  key: string,
  { min, max, path = '' }: { readonly min: number; readonly max: number; readonly path?: string },
): number | undefined {
  const value = optional(raw, key, 'number', path);
  if (value === undefined) return undefined;
  if (!Number.isInteger(value) || value < min || value > max) {
    throw invalidKey(`${path}${key}`, value, `it must be a whole number from ${min} to ${max}`);
  }
  return value;
}

/** One of a few words; undefined when absent or empty. Throws CniError 7 naming the key. */
export function optionalWord<const W extends string>(
  raw: Json,
  key: string,
  words: readonly W[],
  path = '',
): W | undefined {
  const value = optional(raw, key, 'string', path) || undefined;
  if (value === undefined || (words as readonly string[]).includes(value)) return value as W | undefined;
  throw invalidKey(`${path}${key}`, value, `it must be one of "${words.join('", "')}"`);
}

/** An object; undefined when absent. Throws CniError 7 naming the key. */
export function optionalObject(raw: Json, key: string, path = ''): Json | undefined {
  const value = raw[key];
  if (value === undefined || value === null) return undefined;
  if (!isMapping(value)) throw invalidKey(`${path}${key}`, value, 'it must be an object');
  return value;
}

/** A list; empty when absent. Throws CniError 7 naming the key. */
export function listAt(raw: Json, key: string, path = ''): readonly unknown[] {
  const value = raw[key];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalidKey(`${path}${key}`, value, 'it must be a list');
  return value;
}

/** A list of strings; empty when absent. Throws CniError 7 naming the key. */
export function textsAt(raw: Json, key: string, path = ''): readonly string[] {
  const list = raw[key] ?? [];
  if (!Array.isArray(list) || list.some((item) => typeof item !== 'string')) {
    throw invalidKey(`${path}${key}`, list, 'it must be a list of strings');
  }
  return list as string[];
}

/** A list of CIDRs. Throws CniError 7 naming the key, and which of them is none. */
export function cidrsAt(raw: Json, key: string, path = ''): readonly Cidr[] {
  return textsAt(raw, key, path).map((text, i) => {
    const cidr = tryParseCidr(text);
    if (!cidr) throw invalidKey(`${path}${key}[${i}]`, text, 'it is no CIDR, such as "10.96.0.0/12"');
    return cidr;
  });
}

/**
 * An object's keys in the spelling given by `names`, whatever their case was: Go's decoder does not mind it, and runtimes
 * rely on that. Keys of another name stay as they are; of two spellings of one key the last counts, as in Go.
 */
export function withKeysOf(raw: Json, names: readonly string[]): Json {
  const spelling = new Map(names.map((name) => [name.toLowerCase(), name]));
  return Object.fromEntries(Object.entries(raw).map(([key, value]) => [spelling.get(key.toLowerCase()) ?? key, value]));
}
