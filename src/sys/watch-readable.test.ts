import { closeSync, readSync, writeSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { libc } from './libc.ts';
import { watchReadable } from './watch-readable.ts';

const EFD_NONBLOCK = 0o4000;
const ONE = Buffer.from(new BigUint64Array([1n]).buffer);

it('calls back for each descriptor that can be read, until told to stop', async () => {
  const fds = [libc().eventfd(0, EFD_NONBLOCK), libc().eventfd(0, EFD_NONBLOCK)];
  const counts = [0, 0];
  const [stopFirst, stopSecond] = fds.map((fd, i) =>
    watchReadable(fd, () => {
      readSync(fd, Buffer.alloc(8));
      counts[i]!++;
    }),
  );
  writeSync(fds[1]!, ONE);
  await vi.waitFor(() => expect(counts).toEqual([0, 1]));
  writeSync(fds[0]!, ONE);
  await vi.waitFor(() => expect(counts).toEqual([1, 1]));
  stopFirst!();
  stopFirst!();
  writeSync(fds[0]!, ONE);
  writeSync(fds[1]!, ONE);
  await vi.waitFor(() => expect(counts).toEqual([1, 2]));
  stopSecond!();
  for (const fd of fds) closeSync(fd);
});

it('begins anew after all have stopped', async () => {
  for (let round = 0; round < 3; round++) {
    const fd = libc().eventfd(1, EFD_NONBLOCK);
    await new Promise<void>((resolve) => {
      const stop = watchReadable(fd, () => {
        stop();
        resolve();
      });
    });
    closeSync(fd);
  }
});
