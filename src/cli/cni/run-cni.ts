import { readSync, writeSync } from 'node:fs';
import { keepSocketsOpen, main } from '../../cni/index.ts';
import { JSON_LIMITS } from '../../core/index.ts';
import { waitForMessage } from '../../sys/index.ts';
import { VERSION } from '../version.ts';

/** A runtime that neither writes nor closes would keep this process for ever. */
const STDIN_TIMEOUT_MS = 10_000;

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
    stdin: readInput,
    stdout: (text) => writeAll(1, text),
    stderr: (text) => writeAll(2, text),
    version: VERSION,
  });
}

/** All of standard input, as far as a configuration goes. Throws when it is longer, or not closed in time. */
function readInput(): string {
  const chunks: Buffer[] = [];
  for (let length = 0; length <= JSON_LIMITS.length; ) {
    if (!waitForMessage(0, STDIN_TIMEOUT_MS))
      throw new Error(`It was not closed, and nothing came for ${STDIN_TIMEOUT_MS} ms`);
    const chunk = Buffer.allocUnsafe(1 << 16);
    const read = readSync(0, chunk);
    if (read === 0) return Buffer.concat(chunks).toString('utf8');
    chunks.push(chunk.subarray(0, read));
    length += read;
  }
  throw new Error(`It is longer than ${JSON_LIMITS.length} bytes`);
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}
