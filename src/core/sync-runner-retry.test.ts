import { expect, it } from 'vitest';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { SyncRunner } from './sync-runner.ts';

it('what a run leaves undone is tried again ever more seldom, while others go on, until nothing is left', async () => {
  const clock = new FakeClock(0);
  const log: string[] = [];
  let isUndone = true;
  const runner = new SyncRunner({
    name: 'work',
    clock,
    minIntervalMs: 1000,
    maxIntervalMs: 3_600_000,
    retry: { firstMs: 1000, maxMs: 30_000 },
    random: () => 0,
    run: async (full) => {
      log.push(`${clock.now()}${full ? 'F' : ''}`);
      if (isUndone) runner.requestRetry();
    },
    failed: (error) => expect.unreachable(String(error)),
  });
  runner.start();
  await clock.advance(1500);
  runner.request();
  await clock.advance(5500);
  // After one second, two and four; the request is dealt with in its own time.
  expect(log).toEqual(['0F', '1000F', '2000', '3000F', '7000F']);
  isUndone = false;
  runner.request();
  await clock.advance(100_000);
  expect(log.slice(5)).toEqual(['8000']);
  await runner.stop();
});
