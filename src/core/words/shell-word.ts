/** What `plainText` of src/core/json.ts writes otherwise, and the beginning of a comment. */
const UNPRINTED = /[\p{Cc}\u2028-\u202e\u2066-\u2069#]/u;

/**
 * A text as one word of a shell's command line, whatever is in it: names come from objects that others write. One that a terminal
 * would not show as it is, or that holds a `#`, is written as bash, zsh and ksh know it (`$'\x1b'`).
 */
export function shellWord(text: string): string {
  if (/^[\w.:/@%+=,-]+$/.test(text) && !text.startsWith('-')) return text;
  if (!UNPRINTED.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  const inBytes = (character: string) =>
    [...Buffer.from(character)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
  return `$'${text.replace(/[\\']/g, '\\$&').replace(new RegExp(UNPRINTED, 'gu'), inBytes)}'`;
}
