import { plainText } from '../core/index.ts';

/** Prints lines for people, or JSON. What would steer a terminal is shown and not done, also where the caller wrote it himself. */
export function writeOut(text: string): void {
  // Also nothing cannot be written to a full disk.
  if (text !== '') process.stdout.write(plainLines(text));
}

/** The same on stderr. */
export function writeErr(text: string): void {
  process.stderr.write(plainLines(text));
}

function plainLines(text: string): string {
  return text.split('\n').map(plainText).join('\n');
}

/**
 * Has a command end in words where its output cannot be written (a full disk), and go on where nobody reads it any more
 * (`nodeplane status | head`): what it does besides, and its exit status, stay as they are. Without this Node.js ends it in the
 * middle, with a stack trace.
 *
 * @param exitCode of a command whose output cannot be written. @default 1
 */
export function guardStandardOutput(program: string, exitCode = 1): void {
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return;
    writeErr(`${program}: Cannot write the output: ${message}\n`);
    process.exitCode = exitCode;
  });
  // There is nowhere left to tell it.
  process.stderr.on('error', () => {});
}
