import { expect, it } from 'vitest';
import { isAtWork, isRunning, thisMaker } from './maker.ts';

const here = thisMaker({ id: 'this-run', startedMs: 0 });

it('knows whether a process runs, and is not taken in by another one with its number', () => {
  expect(isRunning(here.process)).toBe(true);
  expect(isRunning(`${process.pid}:1`)).toBe(false);
  for (const text of ['4194304:1', '', ':', 'x:y', '1']) expect(isRunning(text)).toBe(false);
});

it('tells who is at work', () => {
  const killed = `${process.pid}:1`;
  expect(isAtWork(here, here)).toBe(true);
  expect(isAtWork({ ...here, process: killed }, here)).toBe(false);
  expect(isAtWork({ ...here, bootId: 'earlier-run' }, here)).toBe(false);
  // Noted by an earlier version, in whatever PID namespace.
  expect(isAtWork({ ...here, pidns: undefined, begunMs: 0 }, here)).toBe(true);
  expect(isAtWork({ ...here, pidns: undefined, process: killed }, here)).toBe(false);
});

it('believes of a process it cannot see that it is at work, for as long as an ADD may take', () => {
  const elsewhere = { ...here, pidns: 'pid:[1]', process: `${process.pid}:1` };
  expect(isAtWork({ ...elsewhere, begunMs: here.begunMs - 299_000 }, here)).toBe(true);
  expect(isAtWork({ ...elsewhere, begunMs: here.begunMs - 300_000 }, here)).toBe(false);
});
