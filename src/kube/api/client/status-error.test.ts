import { expect, it } from 'vitest';
import { encodeObject } from '../../../../test/fakes/api-server/protobuf/index.ts';
import { PROTOBUF } from '../../objects/protobuf/envelope.ts';
import { readStatusError, statusErrorOf } from './status-error.ts';

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function* pieces(...bytes: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* bytes;
}

it('waits as long as the server asks for, and a minute at most', async () => {
  const waits = async (header: string) =>
    (await readStatusError('GET', 429, { 'retry-after': header }, nothing())).retryAfterMs;
  expect([await waits('7'), await waits('86400'), await waits('99999999999')]).toEqual([7000, 60_000, 60_000]);
  const ofEvent = (retryAfterSeconds: number) =>
    statusErrorOf('Watching', { code: 429, details: { retryAfterSeconds } }).retryAfterMs;
  expect([ofEvent(7), ofEvent(86_400)]).toEqual([7000, 60_000]);
});

it('never shows the bytes of a protobuf answer: without a message its reason, and nothing of one that cannot be read', async () => {
  const messageOf = async (body: Uint8Array) => {
    const headers = { 'content-type': PROTOBUF };
    const { message, reason } = await readStatusError(
      'GET',
      403,
      headers,
      pieces(body.subarray(0, 70_000), body.subarray(70_000)),
    );
    return [message, reason];
  };
  const status = (message: string) => {
    const object = { kind: 'Status', apiVersion: 'v1', message, reason: 'Forbidden', code: 403 };
    return Buffer.from(encodeObject(object));
  };
  expect(await messageOf(status('no'))).toEqual([expect.stringMatching(/: no$/), 'Forbidden']);
  expect(await messageOf(status(''))).toEqual([expect.stringMatching(/: Forbidden$/), 'Forbidden']);
  expect(await messageOf(status('x'.repeat(100_000)))).toEqual([
    expect.stringMatching(/: an error without a message$/),
    undefined,
  ]);
});
