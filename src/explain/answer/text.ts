import { plainText } from '../../core/index.ts';
import type { Answer, FurtherCause, Stage, StageResult } from './answer.ts';

/** Lines are no longer where a terminal is wider, nor where none has to show them. */
const MOST_COLUMNS = 100;
const LEAST_COLUMNS = 40;
/** Of a cause, and of what mends it: on narrow terminals more lines. */
const MOST_CHARACTERS = 200;
/** Further causes, what was seen before, and warnings: a line each. */
const MOST_NOTES = 3;
/** Lines of notes and remedies; what is said of the second remedy is left out beyond that. */
const MOST_WITH_REMEDIES = 6;
const LABEL = 11;
/** Begins what is said of a command. */
const COMMENT = '   # ';

export interface TextForm {
  /** Whether the terminal shows more than ASCII. */
  readonly unicode: boolean;
  /** With all evidence, however long. @default false */
  readonly verbose?: boolean;
  /** As wide as the terminal is. @default nothing is cut: programs and files have no width */
  readonly terminal?: number | undefined;
}

const MARKS = {
  unicode: { ok: '✓', fail: '✗', unknown: '?', 'not-reached': '-' },
  ascii: { ok: 'ok', fail: '!!', unknown: '??', 'not-reached': '--' },
} as const satisfies Record<string, Record<StageResult, string>>;

/**
 * The answer for people: one screen of 24 lines and at most 100 columns, and more only when asked for all evidence, or
 * where nothing is cut.
 */
export function answerText(told: Answer, { unicode, verbose = false, terminal }: TextForm): string {
  const { question, verdict, code, cause, path, also, warnings, seen, remedy, notChecked, tookMs } = plain(told);
  const title = `${verdict.toUpperCase()}  ${question.from} -> ${question.to}`;
  const tag = code === null ? '' : `[${code}]`;
  const isCut = terminal !== undefined;
  const columns = Math.max(LEAST_COLUMNS, Math.min(terminal ?? MOST_COLUMNS, MOST_COLUMNS));
  const fitted = (text: string, room = columns) => (isCut ? cut(text, room) : text);
  const most = (lines: number) => ({ columns, lines: isCut ? lines : Number.POSITIVE_INFINITY });
  const sentence = most(Math.ceil(MOST_CHARACTERS / columns));
  const comment = most(Math.ceil(MOST_COLUMNS / columns));
  const stageLine = ({ stage, result, text }: Stage) =>
    fitted(`  ${MARKS[unicode ? 'unicode' : 'ascii'][result]} ${stage.padEnd(LABEL)}${text}`);
  const lines = [
    tag === '' ? fitted(title) : `${`${fitted(title, columns - tag.length - 2)}  `.padEnd(columns - tag.length)}${tag}`,
    ...wrap(cause, '', '', sentence),
    '',
    ...path.flatMap((stage) => [stageLine(stage), ...(verbose ? evidenceLines(stage) : [])]),
  ];
  const note = (label: string, { code: other, text }: FurtherCause) => labelled(label, `${text} [${other}]`, most(1));
  const notes = [
    ...also.map((one) => note('also', one)),
    ...seen.filter(({ kind }) => verbose || kind !== 'missed').map(({ text }) => labelled('seen', text, most(1))),
    ...warnings.map((one) => note('note', one)),
  ];
  const shown = (verbose ? notes : notes.slice(0, MOST_NOTES)).flat();
  const remedies = [verdict === 'unknown' ? 'ask' : 'fix', 'or'].flatMap((label, index) => {
    const text = remedy[index];
    return text === undefined ? [] : [pasted(label, text, comment)];
  });
  const isFull = isCut && columns === MOST_COLUMNS && shown.length + remedies.flat().length > MOST_WITH_REMEDIES;
  const foot = [
    ...shown,
    ...remedies.flatMap((one, index) => (index > 0 && isFull ? one.slice(0, 1) : one)),
    ...labelled('checked', checkedText(path, tookMs, notChecked), most(verbose ? 10 : 2)),
  ];
  return `${[...lines, '', ...foot].map((line) => (unicode ? line : ascii(line)).trimEnd()).join('\n')}\n`;
}

/** Names come from objects, links, rules and programs of others: none ends a line. Remedies hold nothing that would (`shellWord`). */
function plain(answer: Answer): Answer {
  return JSON.parse(JSON.stringify(answer), (_key, value) => (typeof value === 'string' ? plainText(value) : value));
}

function checkedText(path: readonly Stage[], tookMs: number, notChecked: readonly string[]): string {
  const looked = path.filter(({ result }) => result !== 'not-reached').length;
  const not = notChecked.length === 0 ? '' : `; not checked: ${notChecked.join(', ')}`;
  return `${looked} of ${path.length} stages in ${Math.round(tookMs)} ms${not}`;
}

function evidenceLines({ evidence }: Stage): string[] {
  return evidence.map(({ source, object, value }) => `      ${source}: ${object}: ${value}`);
}

/** What a text may take up. */
interface Room {
  readonly columns: number;
  readonly lines: number;
}

function labelled(label: string, text: string, most: Room): string[] {
  return wrap(text, `  ${label.padEnd(LABEL + 2)}`, ' '.repeat(LABEL + 4), most);
}

/**
 * A command on a line of its own, neither broken nor cut, because it is to be pasted; what is said of it beside it, or
 * on the next line.
 */
function pasted(label: string, text: string, most: Room): string[] {
  const [command = '', ...comment] = text.split(COMMENT);
  const whole = `  ${label.padEnd(LABEL + 2)}${text}`;
  if (whole.length <= most.columns || most.lines === Number.POSITIVE_INFINITY || comment.length === 0) return [whole];
  return [`  ${label.padEnd(LABEL + 2)}${command}`, ...labelled('', `# ${comment.join(COMMENT)}`, most)];
}

/** The last line is cut, where their number has a bound. */
function wrap(text: string, first: string, next: string, most: Room): string[] {
  const lines: string[] = [];
  let line = first;
  for (const word of text.split(' ')) {
    const isEmpty = line.length === (lines.length === 0 ? first : next).length;
    if (!isEmpty && line.length + 1 + word.length > most.columns && lines.length + 1 < most.lines) {
      lines.push(line);
      line = next + word;
    } else line += isEmpty ? word : ` ${word}`;
  }
  return [...lines, line].map((one) => (most.lines === Number.POSITIVE_INFINITY ? one : cut(one, most.columns)));
}

function cut(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, columns - 3)}...`;
}

/** What object names hold beyond ASCII is replaced as well: the terminal could not show it. */
function ascii(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?');
}
