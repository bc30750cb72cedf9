import { KNOWN_ANNOTATIONS, KNOWN_LABELS } from '../../objects/known-names.ts';

/** No kind has so many fields: a mapping with more members holds labels, annotations, a selector, or who manages them. */
const MANY = 1000;
/** What is shorter has not enough members to matter. */
const SHORT = 64 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_MAPPING = 0x7b;
const CLOSE_MAPPING = 0x7d;

/** A mapping or list the scan is within. */
interface Level {
  readonly isMapping: boolean;
  /** Where it opens. */
  readonly start: number;
  /** Members so far, but for the first. */
  commas: number;
  /** Where its present member began, if that is to be kept; -1: it is not. */
  kept: number;
  /** The members to be kept if there are too many of them. */
  readonly known: string[];
}

/**
 * Takes out of the text of a JSON value, before it is parsed, what nobody reads: of mappings with more than a thousand
 * members all but the known labels and annotations. The API server bounds the labels of an object by its size alone, and
 * `JSON.parse` takes 100 ms for the 130,000 that fit, each of which it makes a property.
 *
 * @returns the same text if there are none, or if it is no JSON, which parsing will say
 */
export function withoutUnread(text: string): string {
  if (text.length < SHORT) return text;
  const levels: Level[] = [];
  const cuts: { readonly from: number; readonly to: number; readonly members: string }[] = [];
  let stringStart = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const level = levels.at(-1);
    if (code === QUOTE) {
      stringStart = at;
      at = endOfString(text, at);
      if (at < 0) return text;
    } else if (code === OPEN_MAPPING || code === OPEN_LIST) {
      levels.push({ isMapping: code === OPEN_MAPPING, start: at, commas: 0, kept: -1, known: [] });
    } else if (code === COLON) {
      if (level && isKnown(text.slice(stringStart + 1, text.lastIndexOf('"', at)))) level.kept = stringStart;
    } else if (code === COMMA || code === CLOSE_MAPPING || code === CLOSE_LIST) {
      if (!level) return text;
      if (level.kept >= 0) level.known.push(text.slice(level.kept, at));
      level.kept = -1;
      if (code === COMMA) {
        level.commas++;
        continue;
      }
      levels.pop();
      if (!level.isMapping || level.commas < MANY) continue;
      // What was cut within goes with it.
      while (cuts.length > 0 && cuts.at(-1)!.from > level.start) cuts.pop();
      cuts.push({ from: level.start + 1, to: at, members: level.known.join(',') });
    }
  }
  let result = '';
  let done = 0;
  for (const { from, to, members } of cuts) {
    result += text.slice(done, from) + members;
    done = to;
  }
  return done === 0 ? text : result + text.slice(done);
}

function isKnown(key: string): boolean {
  return KNOWN_LABELS.has(key) || KNOWN_ANNOTATIONS.has(key);
}

/** Where the string that begins at `start` ends; -1: nowhere. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return -1;
}
