/** A text as one word of a shell's command line, whatever is in it: names come from objects that others write. */
export function shellWord(text: string): string {
  return /^[\w.:/@%+=,-]+$/.test(text) && !text.startsWith('-') ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
