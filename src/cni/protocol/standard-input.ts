import { readSync } from 'node:fs';
import { JSON_LIMITS } from '../../core/index.ts';
import { waitForMessage } from '../../sys/index.ts';

const STDIN = 0;
/** A runtime that neither writes nor closes would keep this process for ever. */
const TIMEOUT_MS = 10_000;

/** All of standard input, as far as a configuration goes. Throws when it is longer, or not closed in time. */
export function readStandardInput(): string {
  const chunks: Buffer[] = [];
  for (let length = 0; length <= JSON_LIMITS.length; ) {
    if (!waitForMessage(STDIN, TIMEOUT_MS)) throw new Error(`It was not closed, and nothing came for ${TIMEOUT_MS} ms`);
    const chunk = Buffer.allocUnsafe(1 << 16);
    const read = readSync(STDIN, chunk);
    if (read === 0) return Buffer.concat(chunks).toString('utf8');
    chunks.push(chunk.subarray(0, read));
    length += read;
  }
  throw new Error(`It is longer than ${JSON_LIMITS.length} bytes`);
}
