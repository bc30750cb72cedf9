import type { Exec } from '../../src/sys/index.ts';

/** What a program was to be given, as one text; pieces are used up by that. */
export function inputText({ input = '' }: Parameters<Exec>[2] = {}): string {
  return typeof input === 'string' || Buffer.isBuffer(input) ? String(input) : [...input].join('');
}
