import { expect, it } from 'vitest';
import { oneAtATime } from './one-at-a-time.ts';

it('lets nothing begin before what came earlier has ended, however it ended', async () => {
  const log: string[] = [];
  const work = (name: string, fails = false) =>
    oneAtATime(async () => {
      log.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      log.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    });
  const results = await Promise.allSettled([work('a', true), work('b'), work('c')]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
});
