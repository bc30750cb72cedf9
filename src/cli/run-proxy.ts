import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { cleanup, initialise, runAgent } from '../agent/index.ts';
import { type LoadedFile, type Program, readCommandLine } from '../config/index.ts';
import { readGivenFile } from '../core/index.ts';
import { writeErr, writeOut } from './standard-output.ts';
import { BUILD, VERSION } from './version.ts';

/**
 * Does what a kube-proxy command line asks for, and sets the exit status: 0, or 1 after any error.
 *
 * @param argv arguments after the program's name
 * @throws what running fails with
 */
export async function runProxy(program: Program, argv: readonly string[]): Promise<void> {
  // As they were at the start: a change of one ends the process.
  const texts = new Map<string, string>();
  const readFile = (path: string): string => {
    const text = texts.get(path) ?? readGivenFile(path).toString('utf8');
    texts.set(path, text);
    return text;
  };
  const surroundings = { program, version: VERSION, readFile, hostname: hostname() };
  const outcome = readCommandLine(argv, surroundings);
  const inMode = (mode: string) => {
    const other = readCommandLine(argv, { ...surroundings, mode });
    return other.action === 'run' ? other.config : whyNot(other);
  };
  const objectionTo = (file: LoadedFile) => {
    const other = readCommandLine(argv, {
      ...surroundings,
      readFile: (path) => (path === file.path ? file.text : readFile(path)),
    });
    return other.action === 'run' ? undefined : whyNot(other);
  };
  switch (outcome.action) {
    case 'help':
    case 'version':
    case 'refuse':
      writeOut(outcome.output.stdout);
      writeErr(outcome.output.stderr);
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
      await runAgent({ ...outcome, argv, program, build: BUILD, inMode, objectionTo });
  }
}

/** In words. */
function whyNot(outcome: ReturnType<typeof readCommandLine>): string {
  return 'output' in outcome ? outcome.output.stderr.trim() : outcome.action;
}
