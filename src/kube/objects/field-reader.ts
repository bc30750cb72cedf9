import { isMapping } from '../../core/index.ts';
// Small readers that turn unknown data (parsed YAML or JSON) into typed values. A reader never throws: it reports what
// is wrong to a `FieldReport` and goes on, so that one pass finds every problem of an object.

/** Where a field is: names of fields and indexes of lists, from the object down. */
export type FieldPath = readonly (string | number)[];

/** One value that is not what it should be. */
export interface FieldProblem {
  readonly path: FieldPath;
  /** Sentence case, values quoted, no final period. */
  readonly message: string;
}

/**
 * Collects problems together with the place they are at. Nothing is written down on the way there, only on the way back from a
 * problem: of ten thousand values that are read, hardly one has any.
 */
export class FieldReport {
  readonly #problems: FieldProblem[] = [];

  get problems(): readonly FieldProblem[] {
    return this.#problems;
  }

  /** Runs `read` one level deeper. */
  within<T>(key: string | number, read: () => T): T {
    const known = this.#problems.length;
    const result = read();
    this.placeWithin(key, known);
    return result;
  }

  /** As `within`, for what is read ten thousand times: says afterwards that all problems but the first `known` are one level deeper. */
  placeWithin(key: string | number, known: number): void {
    for (let index = known; index < this.#problems.length; index++) {
      const { path, message } = this.#problems[index]!;
      this.#problems[index] = { path: [key, ...path], message };
    }
  }

  problem(message: string): undefined {
    this.#problems.push({ path: [], message });
    return undefined;
  }

  expected(what: string, found: unknown): undefined {
    return this.problem(`Expected ${what}, found ${describeValue(found)}`);
  }
}

/** Reads a value that is there (neither undefined nor, inside a record, null). Reports and returns undefined if it is wrong. */
export type Reader<T> = (value: unknown, report: FieldReport) => T | undefined;

/** A field that always has a value in the result: because it must be given, or because there is a fallback. */
export interface MandatoryField<T> {
  readonly reader: Reader<T>;
  /** What a missing field means; undefined: it must be given. */
  readonly fallback: T | undefined;
}

/** A reader for every field of T: a plain one for optional fields, a `MandatoryField` for the others. */
export type Fields<T> = {
  readonly [K in keyof T]-?: Record<never, never> extends Pick<T, K>
    ? Reader<Exclude<T[K], undefined>>
    : MandatoryField<T[K]>;
};

/** A field that has to be there. */
export function required<T>(reader: Reader<T>): MandatoryField<T> {
  return { reader, fallback: undefined };
}

/** A field that is there with this value when it is missing. */
export function withFallback<T>(reader: Reader<T>, fallback: T): MandatoryField<T> {
  return { reader, fallback };
}

/**
 * Reads a mapping field by field. Unknown fields are dropped. Null counts as missing, as in the Kubernetes API. The
 * result is of type T only if nothing was reported.
 */
export function record<T extends object>(fields: Fields<T>): Reader<T> {
  const keys = Object.keys(fields);
  const readers = Object.values<Reader<unknown> | MandatoryField<unknown>>(fields);
  return (value, report) => {
    if (!isMapping(value)) return report.expected('a mapping', value);
    const result: Record<string, unknown> = {};
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index]!;
      const known = report.problems.length;
      const read = readField(readers[index]!, value[key], report);
      report.placeWithin(key, known);
      if (read !== undefined) result[key] = read;
    }
    return result as T;
  };
}

function readField(field: Reader<unknown> | MandatoryField<unknown>, given: unknown, report: FieldReport): unknown {
  const missing = given === undefined || given === null;
  if (typeof field === 'function') return missing ? undefined : field(given, report);
  if (!missing) return field.reader(given, report);
  return field.fallback === undefined ? report.problem('Required, but missing') : field.fallback;
}

/** A list of which every element is read in the same way. */
export function listOf<T>(element: Reader<T>): Reader<readonly T[]> {
  return (value, report) => {
    if (!Array.isArray(value)) return report.expected('a list', value);
    // Of its length at once: a list that grows has room for seventeen, and most lists of the API hold one.
    const result = new Array<T>(value.length);
    for (let index = 0; index < value.length; index++) {
      const known = report.problems.length;
      result[index] = element(value[index], report) as T;
      report.placeWithin(index, known);
    }
    return result;
  };
}

/**
 * A mapping from any key to text, as labels and annotations are. All of it is checked, and the `known` keys are kept: there
 * may be a hundred thousand others.
 */
export function textMap(known: ReadonlySet<string>): Reader<Readonly<Record<string, string>>> {
  return (value, report) => {
    if (!isMapping(value)) return report.expected('a mapping', value);
    const kept: Record<string, string> = {};
    for (const key in value) {
      const item = value[key];
      if (typeof item !== 'string') report.within(key, () => text(item, report));
      else if (known.has(key)) kept[key] = item;
    }
    return kept;
  };
}

export const text: Reader<string> = (value, report) => {
  if (typeof value === 'string') return value;
  const hint = typeof value === 'number' || typeof value === 'boolean' ? '; put it in quotes' : '';
  return report.problem(`Expected text, found ${describeValue(value)}${hint}`);
};

/** Text that `accepts` says yes to; `what` names it in the message. */
export function textThat(what: string, accepts: (value: string) => boolean): Reader<string> {
  return (value, report) =>
    typeof value === 'string' && !accepts(value) ? report.expected(what, value) : text(value, report);
}

export const flag: Reader<boolean> = (value, report) =>
  typeof value === 'boolean' ? value : report.expected('true or false', value);

/** A whole number from `min` to `max`, both included. */
export function integer(what: string, min: number, max: number): Reader<number> {
  return (value, report) =>
    typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
      ? value
      : report.expected(`${what} from ${min} to ${max}`, value);
}

/** One of a few texts. */
export function oneOf<const T extends string>(...choices: readonly T[]): Reader<T> {
  const list = choices.map((choice) => `"${choice}"`).join(', ');
  return (value, report) =>
    choices.includes(value as T) ? (value as T) : report.expected(choices.length > 1 ? `one of ${list}` : list, value);
}

/** A value as it may stand in a message: short, and never the whole of a mapping or list. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a mapping';
  if (typeof value !== 'string') return String(value);
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
}

/** `spec.ports[0].port`, `metadata.labels["app.kubernetes.io/name"]`; empty for the object itself. */
export function formatFieldPath(path: FieldPath): string {
  let result = '';
  for (const key of path) {
    if (typeof key === 'number') result += `[${key}]`;
    else if (!/^\w+$/.test(key)) result += `[${JSON.stringify(key)}]`;
    else result += result === '' ? key : `.${key}`;
  }
  return result;
}
