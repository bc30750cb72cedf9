import { plainText } from '../core/index.ts';

/** What pino writes for a line, of which only the first three fields are always there. */
interface LogEntry {
  readonly time?: string;
  readonly level?: string;
  readonly msg?: string;
  readonly err?: LoggedError;
  readonly [field: string]: unknown;
}

/** An error as pino shows it; `message` has those of the causes in it. */
interface LoggedError {
  readonly message?: string;
  readonly code?: string;
  readonly stack?: string;
}

/**
 * A line of the log for people (--logging-format text): time, level, message, then the fields as `name=value`. An error is
 * its message and its code, which docs/errors.md explains.
 *
 * Nothing that a field holds can look like another line or reach the terminal as anything but text.
 *
 * @param json the line as pino made it
 * @param withStacks whether errors are followed by the lines of their stack
 * @returns with a line feed at its end
 */
export function textLine(json: string, withStacks: boolean): string {
  const { time = '', level = '', msg = '', err, ...fields } = JSON.parse(json) as LogEntry;
  const words = Object.entries(fields).map(([name, value]) => `${name}=${valueText(value)}`);
  if (err !== undefined) words.push(`err=${valueText(err.message ?? err)}`);
  if (err?.code !== undefined) words.push(`code=${valueText(err.code)}`);
  const line = `${time} ${level.toUpperCase().padEnd(5)} ${[plainText(msg), ...words].join(' ')}\n`;
  return withStacks && err?.stack ? `${line}${stackText(err.stack)}` : line;
}

/**
 * Words as they are, numbers with three digits that count, lists of texts as one text; texts that a reader could not tell from
 * what stands around them, and all else, as JSON.
 */
function valueText(value: unknown): string {
  if (typeof value === 'number' && !Number.isInteger(value)) return String(Number(value.toPrecision(3)));
  if (Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string')) {
    return valueText(value.join(value.some((one) => one.includes(' ')) ? '; ' : ','));
  }
  if (typeof value === 'string' && /^[\w.:/@%+,*-]+$/.test(value)) return value;
  return plainText(JSON.stringify(value) ?? 'undefined');
}

/** Without its first line, which the message is. */
function stackText(stack: string): string {
  const calls = stack.split('\n').filter((line) => /^\s+at /.test(line));
  return calls.map((call) => `    ${plainText(call.trim())}\n`).join('');
}
