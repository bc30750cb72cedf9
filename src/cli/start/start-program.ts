import { setFlagsFromString } from 'node:v8';
import { runBuiltCode } from './built-code.ts';

/**
 * Runs a built program, or ends with a sentence where its code is not there.
 *
 * V8 takes compiled code for the flags alone that it was compiled under, and Node.js has its own modules compiled for none. The
 * flag in the first line of the program, which V8 asked for when it made the heap, is taken back before anything is loaded.
 *
 * @param program its path
 * @param code the path of its code. @default beside it
 * @param options as for `runBuiltCode`
 */
export function startProgram(
  program: string,
  code = `${program}.code`,
  options: { readonly short?: boolean } = {},
): void {
  setFlagsFromString('--max-semi-space-size=0');
  try {
    runBuiltCode(program, code, options);
  } catch (error) {
    const { code: reason, path } = error as NodeJS.ErrnoException;
    if (reason !== 'ENOENT' || path !== code) throw error;
    process.stderr.write(
      `Cannot read the code of "${program}": "${code}" must lie beside it, as the build puts it there\n`,
    );
    process.exit(1);
  }
}
