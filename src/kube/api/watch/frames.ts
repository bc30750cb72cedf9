import { GarbageError } from './garbage-error.ts';

/** etcd holds objects of up to 1.5 MB, and an event is hardly longer. */
const LONGEST_FRAME = 32 * 1024 * 1024;
/** A length, big endian, stands before each. */
const LENGTH_BYTES = 4;

/**
 * Cuts a stream of bytes into frames: what `lines` is for JSON, for a watch in protobuf
 * (k8s.io/apimachinery/pkg/util/framer). What is not there as a whole when the stream ends is not delivered. Throws
 * GarbageError for a frame longer than `longest` bytes.
 */
export async function* frames(chunks: AsyncIterable<Uint8Array>, longest = LONGEST_FRAME): AsyncGenerator<Buffer> {
  // Chunks of a frame that is not whole yet: joining them at each chunk would copy a long one again and again.
  let pieces: Buffer[] = [];
  let held = 0;
  /** How much has to be there before another look. */
  let needed = LENGTH_BYTES;
  for await (const chunk of chunks) {
    pieces.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length));
    held += chunk.length;
    if (held < needed) continue;
    const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    let at = 0;
    for (;;) {
      needed = LENGTH_BYTES;
      if (bytes.length - at < needed) break;
      const length = bytes.readUInt32BE(at);
      if (length > longest) {
        throw new GarbageError(`one of ${length} bytes, more than an object has`);
      }
      needed += length;
      if (bytes.length - at < needed) break;
      yield bytes.subarray(at + LENGTH_BYTES, at + needed);
      at += needed;
    }
    pieces = at < bytes.length ? [bytes.subarray(at)] : [];
    held = bytes.length - at;
  }
}
