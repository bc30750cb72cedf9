import { fieldAt } from '../file/field-path.ts';
import type { FieldPath, ValueAt } from '../file/schema.ts';
import type { ValueType } from '../values/value-type.ts';

/** One flag of the command line. */
export interface FlagSpec<T> {
  readonly type: ValueType<T>;
  /** The value when the flag is not given. */
  readonly fallback: T;
  readonly help: string;
  /** The field of the configuration that the flag sets; flags without one steer the process itself. */
  readonly path?: FieldPath;
  /** The value of the flag without `=value`. A flag that has one never takes the next argument as its value. */
  readonly bareValue?: T;
  readonly shorthand?: string;
  /** What to use instead; such a flag is not listed in the help and says this when it is used. */
  readonly deprecated?: string;
  /** Accepted without any effect, and not listed in the help. */
  readonly ignored?: boolean;
  /** Whether the flag still acts when `--config` is given: the file replaces all others. */
  readonly besideFile?: boolean;
  /** Whether only `nodeplane agent` knows it. */
  readonly own?: boolean;
  /** Another name for it, which only `nodeplane agent` knows. */
  readonly ownAlias?: string;
  /** Whether an empty value leaves the default in place. */
  readonly emptyIsUnset?: boolean;
}

type Extras<T> = Partial<Omit<FlagSpec<T>, 'type' | 'help' | 'path'>>;

/** A flag that sets a field of the configuration and has its type and, if no other is given, its default. */
export function fieldFlag<P extends FieldPath>(
  path: P,
  help: string,
  extras: Extras<ValueAt<P>> = {},
): FlagSpec<ValueAt<P>> {
  const { type, fallback } = fieldAt(path);
  return { ...flagOf(type, fallback, help), path, ...extras };
}

/** A flag that steers the process and is no part of the configuration. */
export function processFlag<T>(type: ValueType<T>, help: string, extras: Extras<T> = {}): FlagSpec<T> {
  return { ...flagOf(type, type.zero, help), ...extras };
}

function flagOf<T>(type: ValueType<T>, fallback: T, help: string): FlagSpec<T> {
  const spec = { type, fallback, help };
  return typeof fallback === 'boolean' ? { ...spec, bareValue: true as T } : spec;
}
