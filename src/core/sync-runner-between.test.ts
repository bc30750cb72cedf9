import { expect, it } from 'vitest';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { SyncRunner } from './sync-runner.ts';

it('nothing begins between runs before the start of the work, or once it is stopped', async () => {
  const clock = new FakeClock(0);
  const runner = new SyncRunner({
    name: 'routes IPv4',
    clock,
    minIntervalMs: 1_000,
    maxIntervalMs: 3_600_000,
    retry: { firstMs: 1_000, maxMs: 30_000 },
    run: () => new Promise((done) => void clock.setTimer(done, 1_000)),
    failed: (error) => expect.unreachable(String(error)),
  });
  const refused = {
    code: 'ERR_DATAPLANE',
    message:
      'Cannot compare or write routes IPv4: its work has not begun, or has ended. Ask again once /readyz answers 200',
  };
  await expect(runner.runFull()).rejects.toMatchObject(refused);
  runner.start();
  await clock.advance(500);
  const late = expect(runner.between(async () => 'begun')).rejects.toMatchObject(refused);
  await Promise.all([runner.stop(), clock.advance(1_000)]);
  await late;
});
