/** Text with control characters, and those by which Unicode ends lines or turns their direction, in JSON's writing. */
export function plainText(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
