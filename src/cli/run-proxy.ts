import { readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { cleanup, initialise, runAgent } from '../agent/index.ts';
import { type Program, readCommandLine } from '../config/index.ts';
import { BUILD, VERSION } from './version.ts';

/**
 * Does what a kube-proxy command line asks for, and sets the exit status: 0, or 1 after any error.
 *
 * @param argv arguments after the program's name
 * @throws what running fails with
 */
export async function runProxy(program: Program, argv: readonly string[]): Promise<void> {
  const outcome = readCommandLine(argv, {
    program,
    version: VERSION,
    readFile: (path) => readFileSync(path, 'utf8'),
    hostname: hostname(),
  });
  switch (outcome.action) {
    case 'help':
    case 'version':
    case 'refuse':
      process.stdout.write(outcome.output.stdout);
      process.stderr.write(outcome.output.stderr);
      process.exitCode = outcome.exitCode;
      return;
    case 'write-config':
      writeFileSync(outcome.path, outcome.text);
      return;
    case 'cleanup':
      await cleanup(outcome.config.ipvs);
      return;
    case 'init-only':
      await initialise(outcome.config);
      return;
    case 'run':
      await runAgent({ ...outcome, program, build: BUILD });
  }
}
