/**
 * All bytes of an answer.
 *
 * @param largest how many there may be; of what is longer no more is read, which closes the connection
 * @param tooLong what is thrown then
 * @throws ERR_API when the connection breaks
 */
export async function wholeBody(
  body: AsyncIterable<Uint8Array>,
  largest: number,
  tooLong: () => Error,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > largest) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
