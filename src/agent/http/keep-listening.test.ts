import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { keepListening } from './keep-listening.ts';

const answered = (path: string) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(path, () => resolve(true)).on('error', () => resolve(false));
    socket.on('close', () => socket.destroy());
  });

it('makes a unix socket anew that somebody removed, also with its folder, and tells each time once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'nodeplane-listening-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'run', 'socket');
  const clock = new FakeClock();
  const server = createServer((socket) => socket.end());
  const told: string[] = [];
  const failed = ({ message }: Error) => told.push(message);
  const listen = () => void server.listen({ path });
  mkdirSync(join(folder, 'run'));
  const stop = await keepListening({ server, listen, clock, path, failed });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  for (const gone of [path, join(folder, 'run')]) {
    rmSync(gone, { recursive: true });
    await clock.advance(5000);
    expect(server.listening).toBe(false);
    await clock.advance(1000);
    await expect.poll(() => answered(path)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  }
  const message = `somebody has removed the socket "${path}"; it is made anew in a second`;
  expect(told).toEqual([message, message]);
  stop();
  await clock.advance(20_000);
  expect(existsSync(path)).toBe(false);
});
