import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { NO_EFFECT } from '../no-effect.ts';
import { FLAG_NAMES, type FlagName, flagNamed } from './flags.ts';

const page = new URL('../../../docs/flags.md', import.meta.url);

/** docs/flags.md, made of the table of flags. `npm run docs` writes it. */
function renderPage(): string {
  const rows = (own: boolean) =>
    [...FLAG_NAMES]
      .filter((name) => (flagNamed(name).own === true) === own)
      .sort()
      .map(rowOf)
      .join('\n');
  const head = '| flag | field of the file | default | what it does |\n|---|---|---|---|';
  return `# Flags

All flags of \`nodeplane agent\`, made of src/config/flags by \`npm run docs\`. A flag that sets a field of the file does so only without
\`--config\`, unless it is one of our own. A wrong value is refused with field, value and remedy before anything is written;
those for a part that is switched off (\`--pool-cidrs\` without \`--pod-cidrs-from pool\`) are not looked at, and a warning says that they have no effect.

## Of nodeplane agent alone

${head}
${rows(true)}

## As in kube-proxy

${head}
${rows(false)}
`;
}

function rowOf(name: FlagName): string {
  const { help, path, type, fallback, deprecated, ignored, ownAlias } = flagNamed(name);
  const names = [name, ...(ownAlias ? [ownAlias] : [])].map((each) => `\`--${each}\``).join(', ');
  const noEffect = path && NO_EFFECT[path];
  const notes = [
    help,
    ...(deprecated ? [`Deprecated: ${deprecated}`] : []),
    ...(noEffect ? [`No effect: ${noEffect}`] : []),
    ...(ignored ? ['Taken and ignored'] : []),
  ].filter((note) => note !== '');
  const cells = [names, path ? `\`${path}\`` : '', type.isZero(fallback) ? '' : `\`${type.toFlag(fallback)}\``];
  return `| ${[...cells, notes.join('. ')].map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
}

it('docs/flags.md lists every flag as the source has it', () => {
  if (process.env.UPDATE_DOCS) writeFileSync(page, renderPage());
  expect(readFileSync(page, 'utf8')).toBe(renderPage());
});
