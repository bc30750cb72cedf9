import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ERROR_CODES } from './error-codes.ts';

const page = new URL('../../docs/errors.md', import.meta.url);

/** docs/errors.md, made of the table of codes. `npm run docs` writes it. */
function renderPage(): string {
  const sections = Object.entries(ERROR_CODES).map(([code, text]) => `## ${code}\n\n${text}\n`);
  return `# Error codes

Every error nodeplane raises on purpose carries one of these codes, in the log (\`err.code\`) and in the output of its
commands. Codes do not change between releases; messages may. This page is made of src/core/error-codes.ts by
\`npm run docs\`.

${sections.join('\n')}`;
}

it('docs/errors.md lists every code as the source has it', () => {
  if (process.env.UPDATE_DOCS) writeFileSync(page, renderPage());
  expect(readFileSync(page, 'utf8')).toBe(renderPage());
});
