import { durationText, plainText } from '../../../core/index.ts';
import { tableLines } from '../../text-table.ts';
import type { Status } from '../status.ts';
import { ageText, MARKS, programText, secondsBetween } from '../words.ts';

/** The page has more of them. */
const FOREIGN_CHANGES = 3;

/** For people: the eight lines, and last, where they stay on the screen, the problems. Every name is text on the terminal. */
export function statusText({
  node,
  version,
  mode,
  takenAt,
  questions,
  problems,
  problemsTotal,
  ruleChanges,
}: Status): string {
  const rows = questions.map(({ id, verdict, title, figure, detail, ageSeconds }) =>
    [MARKS[verdict], title, figure, ageText({ id, ageSeconds }), detail].map(plainText),
  );
  const more = problemsTotal - problems.length;
  return [
    `${node}: nodeplane ${version}, ${mode}, ${takenAt}`,
    '',
    ...tableLines(rows, [2, 3]),
    ...foreignChanges(ruleChanges, takenAt),
    '',
    ...(problemsTotal === 0 ? ['No problems'] : [`PROBLEMS: ${problemsTotal}`]),
    ...problems.flatMap(({ message, command }) => [`  ${MARKS.problem} ${message}`, `      ${command}`]),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ]
    .map((line) => `${plainText(line)}\n`)
    .join('');
}

function foreignChanges(changes: Status['ruleChanges'], now: string): string[] {
  if (changes.length === 0) return [];
  const rows = changes
    .slice(0, FOREIGN_CHANGES)
    .map((change) => [
      `  ${durationText(secondsBetween(change.at, now))} ago`,
      programText(change),
      change.count === 1 ? change.what : `${change.what}, ${change.count} times`,
    ]);
  return [
    '',
    'Rules were changed by others:',
    ...tableLines(
      rows.map((row) => row.map(plainText)),
      [],
    ),
  ];
}
