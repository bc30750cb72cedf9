import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { PortTrouble, ProxyEvent } from '../../proxy/index.ts';
import { recordTroubles } from './trouble-events.ts';

const LOCAL: PortTrouble = { cause: 'no-local-endpoints', text: 'nobody here' };
const HINTS: PortTrouble = { cause: 'hints-ignored', text: '1 of 2 have no hint' };

function setUp() {
  const clock = new FakeClock();
  const told: string[] = [];
  const record = recordTroubles(
    {
      record: ({ namespace, name }, { type, reason, note }) =>
        void told.push(`${namespace}/${name} ${type} ${reason}: ${note}`),
    },
    clock,
  );
  const tell = (portKey: string, ...troubles: PortTrouble[]) =>
    record({ kind: 'portTroubles', family: 'IPv4', at: 1, serviceName: 'shop/web', portKey, troubles } as ProxyEvent);
  return { clock, told, tell };
}

it('tells a cause once for a Service, however many ports have it, and again when it was mended', async () => {
  const { clock, told, tell } = setUp();
  tell('a', LOCAL);
  tell('b', LOCAL);
  await clock.advance(60_000);
  expect(told).toEqual(['shop/web Warning NoLocalEndpoints: In IPv4: nobody here']);
  tell('a');
  await clock.advance(60_000);
  tell('a', LOCAL);
  await clock.advance(60_000);
  expect(told).toHaveLength(1);
  tell('a');
  tell('b');
  tell('b', LOCAL, HINTS);
  await clock.advance(60_000);
  expect(told.slice(1)).toEqual([
    'shop/web Warning NoLocalEndpoints: In IPv4: nobody here',
    'shop/web Normal TopologyHintsIgnored: In IPv4: 1 of 2 have no hint',
  ]);
});

it('says nothing of what a rollout mends by itself', async () => {
  const { clock, told, tell } = setUp();
  tell('a', LOCAL);
  await clock.advance(10_000);
  tell('a');
  await clock.advance(60_000);
  expect(told).toEqual([]);
});
