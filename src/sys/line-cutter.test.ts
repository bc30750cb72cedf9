import fc from 'fast-check';
import { expect, it } from 'vitest';
import { lineCutter } from './line-cutter.ts';

it('gives the lines of a text, however it is cut', () => {
  const line = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\n', ' '));
  fc.assert(
    fc.property(fc.array(line), line, fc.array(fc.integer({ min: 1, max: 40 })), (lines, last, sizes) => {
      const bytes = Buffer.from([...lines.map((each) => `${each}\n`), last].join(''));
      const got: string[] = [];
      const cutter = lineCutter((each) => got.push(each));
      let at = 0;
      for (const size of sizes) {
        cutter.take(bytes.subarray(at, at + size));
        at += size;
      }
      cutter.take(bytes.subarray(at));
      cutter.end();
      // Half a pair of UTF-16 is no UTF-8.
      const whole = (text: string) => Buffer.from(text).toString();
      expect(got).toEqual([...lines, ...(last === '' ? [] : [last])].map(whole));
    }),
  );
});
