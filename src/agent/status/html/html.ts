import { plainText } from '../../../core/index.ts';

/** Text that is HTML already. Only `html` makes it. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

type Value = Html | string | number | false | null | undefined | readonly Value[];

/**
 * HTML out of a template. What is put in is text, in an element or a quoted attribute, whatever it holds; only other HTML stays as
 * it is. Lists are put in one by one; false, null and undefined are nothing.
 */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  let text = parts[0]!;
  for (let i = 0; i < values.length; i++) text += textOf(values[i]) + parts[i + 1]!;
  return new Html(text);
}

function textOf(value: Value): string {
  if (value instanceof Html) return value.toString();
  if (typeof value === 'string') return escaped(value);
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return value.map(textOf).join('');
  return '';
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return plainText(text.replace(/[&<>"']/g, (one) => ENTITIES[one]!));
}
