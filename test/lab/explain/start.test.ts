import { execFileSync, spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { readBuiltCode, runWatched } from '../built-code.ts';
import { builtProgram } from '../programs.ts';

const CODE = 'nodeplane-ask';

it('is a small program, and compiled when it is built', () => {
  const { file, codeAt } = readBuiltCode(CODE);
  // What the agent alone needs is read and begun for every question if it slips in.
  expect(file.length - codeAt).toBeLessThan(700_000);
  expect(runWatched('nodeplane', ['status', '--help'])).toMatchObject({ cache: 'taken' });
});

it.each(['status', 'services', 'explain', 'routes', 'trace', 'diff'])(
  'says the same of "%s" as the whole program does',
  (name) => {
    const help = (...args: string[]) => execFileSync(builtProgram('nodeplane'), args, { encoding: 'utf8' });
    // `help` is a command of the whole program.
    expect(help(name, '--help')).toBe(help('help', name));
  },
);

it.each([
  ['explain', 'svc/shop/web', '--proto', 'icmp'],
  ['explain'],
  ['trace', 'any', '10.0.0.1:80', '--strange'],
  ['diff', '-o', 'yaml'],
])('does not take a command line that cannot be used for an answer: %s', (...args) => {
  const { status, stdout, stderr } = spawnSync(builtProgram('nodeplane'), args, { encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 64, stdout: '' });
  expect(stderr).toMatch(/^error: .*\n\(run with --help for the flags\)\n$/);
});
