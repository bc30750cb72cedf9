import { boolean } from './scalar-types.ts';
import type { ValueType } from './value-type.ts';

/** A list of texts. Null, which is what a missing list is, and the empty list mean the same but are written differently. */
export const textList: ValueType<readonly string[] | null> = {
  placeholder: 'list',
  expected: 'a list of texts',
  zero: null,
  isZero: (value) => value === null || value.length === 0,
  fromFile: (raw) => (Array.isArray(raw) && raw.every((item) => typeof item === 'string') ? raw : undefined),
  toFile: (value) => value,
  fromFlag: (line) => (line === '' ? [] : line.split(',')),
  toFlag: (value) => `[${(value ?? []).join(',')}]`,
  join: (earlier, later) => [...(earlier ?? []), ...(later ?? [])],
};

/** Feature gates: name to whether it is on. In a flag `A=true,B=false`. */
export const gateMap: ValueType<Readonly<Record<string, boolean>>> = {
  placeholder: 'name=true|false,...',
  expected: 'pairs of a feature gate and true or false, such as AllAlpha=false',
  zero: {},
  isZero: (value) => Object.keys(value).length === 0,
  fromFile(raw) {
    if (!isMapping(raw)) return undefined;
    return Object.values(raw).every((value) => typeof value === 'boolean')
      ? (raw as Record<string, boolean>)
      : undefined;
  },
  toFile: (value) => value,
  fromFlag(line) {
    const pairs: [string, boolean][] = [];
    for (const part of line.split(',').filter((pair) => pair !== '')) {
      const [, name, word] = /^([^=]*)=(.*)$/s.exec(part) ?? [];
      const on = boolean.fromFlag((word ?? '').trim());
      if (name === undefined || on === undefined) return undefined;
      pairs.push([name.trim(), on]);
    }
    // fromEntries defines own properties, so that even a gate named "__proto__" is just a name.
    return Object.fromEntries(pairs);
  },
  toFlag: (value) =>
    Object.entries(value)
      .map(([name, on]) => `${name}=${on}`)
      .sort()
      .join(','),
  join: (earlier, later) => ({ ...earlier, ...later }),
};

/** Log verbosity for the source files that a pattern matches. */
export interface VerbosityPattern {
  readonly filePattern: string;
  readonly verbosity: number;
}

export const verbosityPatterns: ValueType<readonly VerbosityPattern[]> = {
  placeholder: 'pattern=number,...',
  expected: 'pairs of a file pattern and a verbosity, such as runner=4',
  zero: [],
  isZero: (value) => value.length === 0,
  fromFile(raw) {
    if (!Array.isArray(raw)) return undefined;
    const patterns = raw.map((item: unknown) => {
      const { filePattern, verbosity } = isMapping(item) ? item : {};
      return typeof filePattern === 'string' && isVerbosity(verbosity) ? { filePattern, verbosity } : undefined;
    });
    return patterns.every((pattern) => pattern !== undefined) ? patterns : undefined;
  },
  toFile: (value) => value.map(({ filePattern, verbosity }) => ({ filePattern, verbosity })),
  fromFlag(line) {
    const patterns: VerbosityPattern[] = [];
    for (const part of line.split(',').filter((pair) => pair !== '')) {
      const [, filePattern, digits] = /^([^=]+)=(\d+)$/.exec(part) ?? [];
      if (filePattern === undefined || !isVerbosity(Number(digits))) return undefined;
      patterns.push({ filePattern, verbosity: Number(digits) });
    }
    return patterns;
  },
  toFlag: (value) => value.map(({ filePattern, verbosity }) => `${filePattern}=${verbosity}`).join(','),
  join: (earlier, later) => [...earlier, ...later],
};

function isVerbosity(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** 32;
}

/** Whether it is a mapping of YAML or JSON; bytes and sets of YAML (`!!binary`, `!!set`) are objects of their own classes. */
export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
