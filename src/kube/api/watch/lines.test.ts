import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunksOf } from '../../../../test/fakes/chunks.ts';
import { lines } from './lines.ts';

async function read(text: string, sizes: readonly number[] = [], longest?: number): Promise<string[]> {
  const result: string[] = [];
  for await (const line of lines(chunksOf(Buffer.from(text), sizes), longest)) result.push(line);
  return result;
}

describe('lines', () => {
  it('do not depend on how the bytes are cut, not even inside a character', async () => {
    const text = fc.stringMatching(/^[ax é€😀]{0,20}$/u);
    await fc.assert(
      fc.asyncProperty(fc.array(text), fc.array(fc.nat(9)), async (given, sizes) => {
        const joined = given.map((line) => `${line}\n`).join('');
        expect(await read(joined, sizes)).toEqual(given.filter((line) => line.trim() !== ''));
      }),
    );
  });

  it('end with a line feed: the rest is not delivered', async () => {
    expect(await read('{"a":1}\n{"b":2}')).toEqual(['{"a":1}']);
  });

  it('may be long, but not endless', async () => {
    expect(await read(`${'x'.repeat(100)}\n`, [], 100)).toHaveLength(1);
    await expect(read('x'.repeat(101), [40, 40], 100)).rejects.toThrow('a line is longer than 100 bytes');
  });
});
