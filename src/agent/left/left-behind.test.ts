import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { Logger } from '../logger.ts';
import { LeftBehind, type LeftBehindOptions } from './left-behind.ts';

const ROUTES = {
  isOurWork: false,
  remedy: 'nodeplane cleanup --routes-only',
  words: { lookFails: 'cannot be looked for', found: 'are still here', gone: 'are gone' },
};
const leftBehind = (options: Pick<LeftBehindOptions, 'clock' | 'logger' | 'look'>) =>
  new LeftBehind({ ...ROUTES, ...options });

it('tells once what is there and how to remove it, and that it is gone', async () => {
  const clock = new FakeClock();
  const lines: unknown[] = [];
  const logger = {
    info: (text: string) => lines.push(text),
    warn: (facts: unknown) => lines.push(facts),
  } as unknown as Logger;
  let there = '3 IPv4 routes (proto 78)';
  const left = leftBehind({ clock, logger, look: async () => there });
  left.start();
  await clock.advance(30_000);
  expect(lines).toEqual([{ present: there, remedy: 'nodeplane cleanup --routes-only' }]);
  expect(left.found()).toBe(there);
  there = '';
  await clock.advance(10_000);
  expect(lines.slice(1)).toEqual(['are gone']);
  expect(left.found()).toBe('');
});

it('looks again when it could not look, and tells that once', async () => {
  const clock = new FakeClock();
  const lines: unknown[] = [];
  const logger = { info: (text: string) => lines.push(text), warn: (facts: unknown) => lines.push(facts) };
  const error = new Error('changed during each of 6 readings');
  const answers = [error, error, 'device nodeplane-v4', error, ''];
  const look = async () => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer ?? '';
  };
  const left = leftBehind({ clock, logger: logger as unknown as Logger, look });
  left.start();
  await clock.advance(25_000);
  expect(lines).toEqual([{ err: error }, { present: 'device nodeplane-v4', remedy: expect.any(String) }]);
  await clock.advance(10_000);
  expect(left.found()).toBe('device nodeplane-v4');
  await clock.advance(10_000);
  expect(lines.slice(2)).toEqual([{ err: error }, 'are gone']);
});
