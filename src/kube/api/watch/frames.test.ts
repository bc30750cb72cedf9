import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunksOf } from '../../../../test/fakes/chunks.ts';
import { frames } from './frames.ts';

function framed(content: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
}

async function read(bytes: Uint8Array, sizes: readonly number[] = [], longest?: number): Promise<string[]> {
  const result: string[] = [];
  for await (const frame of frames(chunksOf(bytes, sizes), longest)) result.push(frame.toString('hex'));
  return result;
}

describe('frames', () => {
  it('do not depend on how the bytes are cut', async () => {
    const content = fc.uint8Array({ maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(fc.array(content), fc.array(fc.nat(40)), async (given, sizes) => {
        const expected = given.map((bytes) => Buffer.from(bytes).toString('hex'));
        expect(await read(Buffer.concat(given.map(framed)), sizes)).toEqual(expected);
      }),
    );
  });

  it('are delivered whole or not at all', async () => {
    const [first, second] = [framed(Buffer.from([1])), framed(Buffer.from([2, 3]))];
    expect(await read(Buffer.concat([first, second.subarray(0, -1)]))).toEqual(['01']);
    expect(await read(Buffer.concat([first, second.subarray(0, 3)]))).toEqual(['01']);
  });

  it('may be long, but not endless', async () => {
    expect(await read(framed(Buffer.alloc(100)), [], 100)).toHaveLength(1);
    await expect(read(framed(Buffer.alloc(101)), [4], 100)).rejects.toThrow(
      'found one of 101 bytes, more than an object has',
    );
  });
});
