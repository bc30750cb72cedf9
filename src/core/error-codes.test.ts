import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ERROR_CODES } from './error-codes.ts';

const page = new URL('../../docs/errors.md', import.meta.url);

/** docs/errors.md, made of the table of codes. `npm run docs` writes it. */
function renderPage(): string {
  const sections = Object.entries(ERROR_CODES).map(([code, text]) => `## ${code}\n\n${text}\n`);
  return `# Error codes

Every error nodeplane raises on purpose carries one of these codes: in the log (\`code=\`; \`err.code\` with
\`--logging-format json\`), at the end of what a command says, in parentheses, and in the details of a CNI error beside the number
that the CNI specification gives it. There is none for a command line that cannot be read (\`error: …\`, or the usage), nor for a
configuration that is refused at the start (\`command failed: …\`, as kube-proxy says it). Codes do not change between releases;
messages may. This page is made of src/core/error-codes.ts by \`npm run docs\`.

${sections.join('\n')}`;
}

it('docs/errors.md lists every code as the source has it', () => {
  if (process.env.UPDATE_DOCS) writeFileSync(page, renderPage());
  expect(readFileSync(page, 'utf8')).toBe(renderPage());
});

/** Of those that are errors for callers inside alone: whoever catches them gives them a code, or says their words within another. */
const WITHOUT_CODE = ['NoAnswerError', 'WireError', 'BackgroundFailure'];

it('errors with a class of their own carry a code', () => {
  const src = new URL('../', import.meta.url).pathname;
  const sources = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const classes = sources.flatMap((file) =>
    Array.from(
      readFileSync(`${src}${file}`, 'utf8').matchAll(/^export class (\w+) extends Error\b/gm),
      ([, name]) => name,
    ),
  );
  expect(classes.sort()).toEqual([...WITHOUT_CODE, 'NodeplaneError'].sort());
});
