import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { BackgroundFailure } from './background.ts';
import { systemClock as clock, sleep } from './clock.ts';

describe('the real clock', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('does not take the calendar for the time that passes', () => {
    const [now, wall] = [clock.now(), clock.wallTime()];
    vi.setSystemTime(wall - 3_600_000);
    expect(clock.wallTime()).toBe(wall - 3_600_000);
    expect(clock.now()).toBe(now);
    vi.advanceTimersByTime(5);
    expect(clock.now()).toBe(now + 5);
  });

  it.each([2 ** 31 - 1, 2 ** 31, 2 ** 31 + 5, 3 * 2 ** 31])('waits %i ms and not less', (ms) => {
    const fired = vi.fn();
    clock.setTimer(fired, ms);
    vi.advanceTimersByTime(ms - 1);
    expect(fired).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledOnce();
  });

  it('waits for ever, and can be told not to', () => {
    const fired = vi.fn();
    clock.setTimer(fired, Number.POSITIVE_INFINITY);
    const timer = clock.setTimer(fired, 2 ** 31 + 5);
    vi.advanceTimersByTime(2 ** 31);
    timer.cancel();
    vi.advanceTimersByTime(2 ** 33);
    expect(fired).not.toHaveBeenCalled();
  });

  it('tells what a timer threw or rejected with', async () => {
    const told = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    clock.setTimer(() => {
      throw new Error('thrown');
    }, 1);
    clock.setTimer(() => Promise.reject(new Error('rejected')), 2);
    await vi.advanceTimersByTimeAsync(3);
    expect(told.mock.calls).toEqual(
      ['thrown', 'rejected'].map((what) => [new BackgroundFailure('timer', new Error(what))]),
    );
    told.mockRestore();
  });
});

it('is the only one to ask for the calendar: durations are no business of it', () => {
  const folder = join(import.meta.dirname, '..');
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (path) => /(?<!\.test)\.ts$/.test(path) && path !== 'core/clock.ts',
  );
  expect(sources.length).toBeGreaterThan(300);
  const asks = sources.filter((path) =>
    /\bDate\.now\b|\bnew Date\(\)|\bDate\(\)/.test(readFileSync(join(folder, path), 'utf8')),
  );
  expect(asks).toEqual([]);
});

describe('sleep', () => {
  it('ends with the time or with the signal', async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const woken: string[] = [];
    void sleep(clock, 100, stop.signal).then(() => woken.push('time'));
    void sleep(clock, 1_000, stop.signal).then(() => woken.push('signal'));
    await clock.advance(100);
    expect(woken).toEqual(['time']);
    stop.abort();
    await clock.advance(0);
    expect(woken).toEqual(['time', 'signal']);
    await sleep(clock, 1_000, stop.signal);
  });
});
