import { expect, it } from 'vitest';
import { nodeplaneProgram } from './program.ts';

it.each([
  ['ipam', 'check', '--help'],
  ['preflight', '--strict', '-h'],
  ['migration', '-o', 'json', '--help'],
])('%s %s %s prints the help of the command', async (...words) => {
  let printed = '';
  const program = nodeplaneProgram();
  const command = program.commands.find((one) => one.name() === words[0])!;
  command.exitOverride().configureOutput({ writeOut: (text) => (printed += text) });
  await expect(program.parseAsync(words, { from: 'user' })).rejects.toMatchObject({ exitCode: 0 });
  expect(printed).toContain(`Usage: nodeplane ${words[0]}`);
});
