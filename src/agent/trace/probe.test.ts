import { expect, it } from 'vitest';
import { outcomeWithin, type ProbeOutcome } from './probe.ts';

const OUTCOME: ProbeOutcome = { source: '10.244.1.7', result: 'connected' };
const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

it('an attempt that has ended leaves no timer, which would keep the command from its end', async () => {
  const before = timers();
  expect(await outcomeWithin(Promise.resolve(OUTCOME), 60_000)).toBe(OUTCOME);
  await expect(outcomeWithin(Promise.reject(new Error('no namespace')), 60_000)).rejects.toThrow('no namespace');
  expect(timers()).toBe(before);
});

it('an attempt is waited for no longer than that', async () => {
  expect(await outcomeWithin(new Promise(() => {}), 1)).toMatchObject({ result: expect.stringContaining('by then') });
});
