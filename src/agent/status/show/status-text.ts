import { plainText } from '../../../core/index.ts';
import { tableLines } from '../../text-table.ts';
import type { Status } from '../status.ts';
import { ageText, MARKS } from '../words.ts';

/** For people: the eight lines, and last, where they stay on the screen, the problems. Every name is text on the terminal. */
export function statusText({ node, version, mode, takenAt, questions, problems, problemsTotal }: Status): string {
  const rows = questions.map(({ id, verdict, title, figure, detail, ageSeconds }) =>
    [MARKS[verdict], title, figure, ageText({ id, ageSeconds }), detail].map(plainText),
  );
  const more = problemsTotal - problems.length;
  return [
    `${node}: nodeplane ${version}, ${mode}, ${takenAt}`,
    '',
    ...tableLines(rows, [2, 3]),
    '',
    ...(problemsTotal === 0 ? ['No problems'] : [`PROBLEMS: ${problemsTotal}`]),
    ...problems.flatMap(({ message, command }) => [`  ${MARKS.problem} ${message}`, `      ${command}`]),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ]
    .map((line) => `${plainText(line)}\n`)
    .join('');
}
