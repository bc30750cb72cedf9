import { NodeplaneError } from '../../../core/index.ts';

/** etcd holds objects of up to 1.5 MB; escaping in JSON may make that several times as much. */
const LONGEST_LINE = 32 * 1024 * 1024;

const LF = 0x0a;

/**
 * Cuts a stream of bytes into lines (without their line feed, empty ones left out). What follows the last line feed is
 * not a line: a connection that breaks in the middle of an event must not deliver half of it. Throws ERR_API for a line
 * longer than `longest` bytes.
 */
export async function* lines(chunks: AsyncIterable<Uint8Array>, longest = LONGEST_LINE): AsyncGenerator<string> {
  // The pieces of a line are joined once it is whole: joining at each chunk would copy a long line again and again.
  let pieces: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      pieces.push(chunk.subarray(start, end));
      const line = Buffer.concat(pieces).toString('utf8');
      pieces = [];
      length = 0;
      start = end + 1;
      if (line.trim() !== '') yield line;
    }
    pieces.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > longest) {
      throw new NodeplaneError(
        'ERR_API',
        `Cannot read the API server's stream: a line is longer than ${longest} bytes`,
      );
    }
  }
}
