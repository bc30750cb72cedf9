import { KUBERNETES_VERSION } from '../program.ts';
import type { ValueType } from '../values/value-type.ts';

/** What `--version` asks for: nothing, the version in a line, all about it, or that another version be reported. */
export type VersionRequest = 'none' | 'line' | 'raw' | `v${string}`;

const WORDS: Readonly<Record<string, VersionRequest>> = { true: 'line', false: 'none', raw: 'raw' };

/**
 * `--version`, `--version=raw`, or `--version=v1.36.2-suffix`, which does not print but changes the version that is reported.
 * Only the suffix may differ: the version says what the behaviour is.
 */
export const versionRequest: ValueType<VersionRequest> = {
  placeholder: 'raw',
  expected: `true, false, raw, or ${KUBERNETES_VERSION} with a suffix of your own`,
  zero: 'none',
  isZero: (value) => value === 'none',
  fromFile: (raw) => (typeof raw === 'string' ? readRequest(raw) : undefined),
  toFile: (value) => value,
  fromFlag: readRequest,
  toFlag: (value) => ({ none: 'false', line: 'true' })[value as string] ?? value,
};

function readRequest(word: string): VersionRequest | undefined {
  if (Object.hasOwn(WORDS, word)) return WORDS[word];
  const [, base] = /^(v\d+\.\d+\.\d+)(?:[-+][\w.+-]+)?$/.exec(word) ?? [];
  return base === KUBERNETES_VERSION ? (word as VersionRequest) : undefined;
}
