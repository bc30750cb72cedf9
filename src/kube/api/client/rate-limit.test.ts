import { expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { RateLimit } from './rate-limit.ts';

function start(qps: number, burst: number) {
  const clock = new FakeClock();
  const limit = new RateLimit({ qps, burst, clock });
  const sent: number[] = [];
  const startedAt = clock.now();
  const never = new AbortController().signal;
  const ask = async (times: number, signal = never) => {
    for (let n = 0; n < times; n++) void limit.wait(signal).then(() => sent.push(clock.now() - startedAt));
    await clock.advance(0);
  };
  return { clock, sent, ask };
}

it('lets a burst go at once, then so many a second, in their order', async () => {
  const { clock, sent, ask } = start(5, 3);
  await ask(6);
  expect(sent).toEqual([0, 0, 0]);
  await clock.advance(10_000);
  expect(sent).toEqual([0, 0, 0, 200, 400, 600]);
  // The pause filled the bucket again, and no further.
  await ask(4);
  expect(sent.slice(6)).toEqual([10_000, 10_000, 10_000]);
});

it('gives back the turn of a request that is given up', async () => {
  const { clock, sent, ask } = start(1, 1);
  const given = new AbortController();
  await ask(1);
  await ask(3, given.signal);
  given.abort();
  await clock.advance(0);
  sent.length = 0;
  await ask(1);
  await clock.advance(1_000);
  expect(sent).toEqual([1_000]);
});

it.each([[0], [-1]])('has no limit at %d a second', async (qps) => {
  const { sent, ask } = start(qps, 0);
  await ask(1000);
  expect(sent).toHaveLength(1000);
});
