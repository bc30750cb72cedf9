import { expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { QuietGuard } from './quiet-guard.ts';

it.each([-(2 ** 40), 0, 2 ** 40])('speaks up after the limit, with the calendar moved by %i ms', async (byMs) => {
  const clock = new FakeClock();
  const quiet: number[] = [];
  const guard = new QuietGuard(clock, 1_000, (limitMs) => quiet.push(limitMs));
  await clock.advance(900);
  clock.setCalendar(byMs);
  guard.heard();
  await clock.advance(999);
  expect(quiet).toEqual([]);
  await clock.advance(1);
  expect(quiet).toEqual([1_000]);
});
