import { expect, it, vi } from 'vitest';
import { BackgroundFailure, stopAll } from './background.ts';

it('stops one after the other, whatever fails to stop', async () => {
  const warning = vi.spyOn(process, 'emitWarning').mockReturnValue();
  const order: string[] = [];
  const begun: unknown[] = [];
  const running = [
    {
      async stop() {
        await new Promise((resolve) => setImmediate(resolve));
        order.push('first');
      },
    },
    {
      stop() {
        throw new Error('EBADF');
      },
    },
    { stop: () => Promise.reject(new Error('hung')) },
    { stop: () => void order.push('last') },
  ];
  await stopAll(running, (each) => begun.push(each));
  expect(begun).toEqual(running);
  expect(order).toEqual(['first', 'last']);
  expect(warning.mock.calls).toEqual([
    [new BackgroundFailure('stop', new Error('EBADF'))],
    [new BackgroundFailure('stop', new Error('hung'))],
  ]);
  warning.mockRestore();
});
