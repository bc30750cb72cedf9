import { readFileSync, writeSync } from 'node:fs';
import { main } from '../cni/index.ts';
import { VERSION } from './version.ts';

/**
 * Serves one CNI request of this process: environment and standard input in, standard output and exit status out.
 * The descriptors are used directly: process.stdin and process.stdout take longer to set up than an ADD takes in the
 * kernel.
 *
 * @param argv arguments after the program's name
 */
export function runCni(argv: readonly string[]): void {
  process.exitCode = main({
    env: process.env,
    argv,
    stdin: () => readFileSync(0, 'utf8'),
    stdout: (text) => writeAll(1, text),
    stderr: (text) => writeAll(2, text),
    version: VERSION,
  });
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}
