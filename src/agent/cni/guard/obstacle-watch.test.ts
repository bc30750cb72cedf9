import { expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import type { Logger } from '../../logger.ts';
import { ObstacleWatch } from './obstacle-watch.ts';

function world() {
  const clock = new FakeClock();
  const told: unknown[] = [];
  const logger = { warn: ({ reason }: { reason: string }) => told.push(reason) } as unknown as Logger;
  const watch = new ObstacleWatch({ clock, logger });
  const look = (...reasons: string[]) => watch.look(() => reasons);
  return { clock, told, watch, look };
}

it('tells what has been in the way for three seconds, once until it is gone', async () => {
  const { clock, told, watch, look } = world();
  expect(look('docker')).toBe(3000);
  await clock.advance(2999);
  expect(look('docker', 'ufw')).toBe(1);
  expect([told, watch.told()]).toEqual([[], []]);
  await clock.advance(1);
  expect(look('docker', 'ufw')).toBe(2999);
  expect(look('docker')).toBeUndefined();
  expect([told, watch.told()]).toEqual([['docker'], ['docker']]);
  expect(look()).toBeUndefined();
  expect(watch.told()).toEqual([]);
  look('docker');
  await clock.advance(3000);
  look('docker');
  expect(told).toEqual(['docker', 'docker']);
});

it('goes on from what it saw where a look fails', async () => {
  const { clock, told, watch, look } = world();
  look('docker');
  await clock.advance(3000);
  expect(watch.look(() => undefined)).toBeUndefined();
  look('docker');
  expect(told).toEqual(['docker']);
});

it.each([
  [5, 1500],
  [100, 3000],
])('rests for 300 times what a look took, three seconds at most: %i ms', async (tookMs, restMs) => {
  const { clock, watch } = world();
  let looks = 0;
  const look = () => {
    looks++;
    clock.pass(tookMs);
    return [];
  };
  expect(watch.look(look)).toBeUndefined();
  await clock.advance(1000);
  expect(watch.look(look)).toBe(restMs - 1000);
  await clock.advance(restMs - 1000);
  expect(watch.look(look)).toBeUndefined();
  expect(looks).toBe(2);
});
