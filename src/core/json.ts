import { NodeplaneError } from './errors.ts';

/**
 * What is read as JSON for the CNI plugin: configurations, results, notes. What runtimes and plugins write has some
 * kilobytes and a dozen levels; from some thousand levels on, programs that walk through it run out of stack. The annotations
 * of a pod, which a runtime may pass, have up to 256 KiB, and six times as much when each character is escaped.
 */
export const JSON_LIMITS = {
  /** In bytes of a file, and characters of a text. */
  length: 2 << 20,
  /** Objects and lists inside each other. */
  depth: 64,
} as const;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/**
 * `JSON.parse` for texts from outside, within `JSON_LIMITS`.
 *
 * @throws ERR_JSON when it is too large or too deep; SyntaxError as `JSON.parse`
 */
export function parseJson(text: string): unknown {
  const { length, depth } = JSON_LIMITS;
  if (text.length > length) throw beyond(`it has ${text.length} characters, and may have ${length}`);
  if (isDeeperThan(text, depth)) throw beyond(`objects and lists are nested more than ${depth} deep`);
  return JSON.parse(text);
}

/** Right for valid JSON; of other texts it does not matter, they are refused. */
function isDeeperThan(text: string, limit: number): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (OPENING.has(code)) {
      if (++depth > limit) return true;
    } else if (CLOSING.has(code)) depth--;
  }
  return false;
}

function beyond(why: string): NodeplaneError {
  return new NodeplaneError('ERR_JSON', `The JSON is beyond its limits: ${why}`);
}

/** What a command prints for programs (`-o json`). */
export function jsonText(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** Whether a value of JSON or YAML is an object there, and no list. */
export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Text with control characters, and those by which Unicode ends lines or turns their direction, in JSON's writing. */
export function plainText(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
