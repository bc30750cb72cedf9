import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { CounterSamples } from './counter-samples.ts';

it('remembers counters of one to two minutes ago, or of the start', async () => {
  const clock = new FakeClock();
  let invalid = 7;
  const samples = new CounterSamples(clock, () => ({ invalid }));
  expect(samples.before).toBeNull();
  samples.start();
  invalid = 8;
  await clock.advance(59_000);
  expect(samples.before).toEqual({ secondsAgo: 59, counters: { invalid: 7 } });
  await clock.advance(1000);
  invalid = 9;
  await clock.advance(59_000);
  expect(samples.before).toEqual({ secondsAgo: 119, counters: { invalid: 7 } });
  await clock.advance(1000);
  expect(samples.before).toEqual({ secondsAgo: 60, counters: { invalid: 8 } });
  samples.stop();
  await clock.advance(600_000);
  expect(samples.before).toEqual({ secondsAgo: 660, counters: { invalid: 8 } });
});
