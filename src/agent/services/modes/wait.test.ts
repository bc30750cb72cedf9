import { expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { NodeplaneError } from '../../../core/index.ts';
import { onceUnlocked } from './wait.ts';

const locked = new NodeplaneError('ERR_IPTABLES_LOCK', 'held');

it('work that a foreign lock keeps from being done is done when the lock is free', async () => {
  const clock = new FakeClock();
  let tries = 0;
  const done = onceUnlocked(
    async () => {
      if (++tries < 50) throw locked;
    },
    clock,
    new AbortController().signal,
  );
  await clock.advance(600_000);
  await done;
  expect(tries).toBe(50);
});

it('work that fails for another reason is not repeated, and none goes on after the end', async () => {
  const clock = new FakeClock();
  const controller = new AbortController();
  const failed = new Error('no');
  await expect(onceUnlocked(() => Promise.reject(failed), clock, controller.signal)).rejects.toBe(failed);
  const waiting = onceUnlocked(() => Promise.reject(locked), clock, controller.signal);
  await clock.advance(0);
  controller.abort();
  await waiting;
});
