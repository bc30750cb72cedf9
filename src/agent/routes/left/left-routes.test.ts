import { expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import type { Logger } from '../../logger.ts';
import { LeftRoutes } from './left-routes.ts';

it('tells once what is there and how to remove it, and that it is gone', async () => {
  const clock = new FakeClock();
  const lines: unknown[] = [];
  const logger = {
    info: (text: string) => lines.push(text),
    warn: (facts: unknown) => lines.push(facts),
  } as unknown as Logger;
  let there = '3 IPv4 routes (proto 78)';
  const left = new LeftRoutes({ config: { routes: undefined }, clock, logger, look: async () => there });
  left.start();
  await clock.advance(30_000);
  expect(lines).toEqual([{ present: there, remedy: 'nodeplane cleanup --routes-only' }]);
  expect(left.found()).toBe(there);
  there = '';
  await clock.advance(10_000);
  expect(lines.slice(1)).toEqual(['The routes of an agent with --routes are gone']);
  expect(left.found()).toBe('');
});
