import { errorText, NodeplaneError } from '../core/index.ts';
import { writeErr } from './standard-output.ts';

/** Prints what ended a command, and makes the exit status 1. */
export function reportFailure(program: string, error: unknown): void {
  const code = error instanceof NodeplaneError ? ` (${error.code})` : '';
  writeErr(`${program}: ${errorText(error)}${code}\n`);
  process.exitCode = 1;
}
