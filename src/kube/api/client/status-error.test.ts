import { expect, it } from 'vitest';
import { readStatusError, statusErrorOf } from './status-error.ts';

async function* nothing(): AsyncGenerator<Uint8Array> {}

it('waits as long as the server asks for, and a minute at most', async () => {
  const waits = async (header: string) =>
    (await readStatusError('GET', 429, { 'retry-after': header }, nothing())).retryAfterMs;
  expect([await waits('7'), await waits('86400'), await waits('99999999999')]).toEqual([7000, 60_000, 60_000]);
  const ofEvent = (retryAfterSeconds: number) =>
    statusErrorOf('Watching', { code: 429, details: { retryAfterSeconds } }).retryAfterMs;
  expect([ofEvent(7), ofEvent(86_400)]).toEqual([7000, 60_000]);
});
