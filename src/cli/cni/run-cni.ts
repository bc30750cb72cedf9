import { writeSync } from 'node:fs';
import { keepSocketsOpen, main, readStandardInput } from '../../cni/index.ts';
import { VERSION } from '../version.ts';

/**
 * Serves one CNI request of this process: environment and standard input in, standard output and exit status out.
 * The descriptors are used directly: process.stdin and process.stdout take longer to set up than an ADD takes in the
 * kernel.
 *
 * @param argv arguments after the program's name
 */
export async function runCni(argv: readonly string[]): Promise<void> {
  keepSocketsOpen();
  process.exitCode = await main({
    env: process.env,
    argv,
    // As the caller wrote it, before symbolic links are followed.
    program: process.argv[1] ?? '',
    stdin: readStandardInput,
    stdout: (text) => writeAll(1, text),
    stderr: (text) => writeAll(2, text),
    version: VERSION,
  });
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}
