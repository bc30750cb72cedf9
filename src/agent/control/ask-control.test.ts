import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSocketServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NoAnswerError } from '../http/ask-agent.ts';
import { askControl, askControlPatiently } from './ask-control.ts';

let folder: string;
let socketPath: string;
let server: Server;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-control-'));
  socketPath = join(folder, 'agent.sock');
});
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

const listen = (on: Server) => {
  server = on;
  return new Promise<void>((resolve) => server.listen(socketPath, resolve));
};
/** Accepts, reads, and says nothing. */
const hangs = () => createSocketServer((socket) => void socket.on('error', () => {}).resume());
const answering = (answer: RequestListener) => createServer({ keepAlive: false }, answer);
const page = { method: 'GET', path: '/diff', timeoutMs: 5000 } as const;

it('waits for an agent that accepts and says nothing as long as the caller can, and no longer', async () => {
  await listen(hangs());
  const asked = askControl({ ...page, socketPath, timeoutMs: 100 });
  await expect(asked).rejects.toThrow('no answer within 0.1 s');
  await expect(asked).rejects.toBeInstanceOf(NoAnswerError);
});

describe('what takes long', () => {
  const patience = { aliveWithinMs: 300, againMs: 50, waiting: () => {} };

  it('is not asked for at all of an agent that hangs', async () => {
    await listen(hangs());
    await expect(askControlPatiently({ ...page, socketPath }, patience)).rejects.toThrow('no answer within 0.3 s');
  });

  it('is given up when the agent begins to hang meanwhile', async () => {
    let asked = 0;
    await listen(
      answering(({ url }, response) => {
        if (url === '/alive' && asked++ < 2) response.end('alive\n');
      }),
    );
    await expect(askControlPatiently({ ...page, socketPath }, patience)).rejects.toBeInstanceOf(NoAnswerError);
    expect(asked).toBe(3);
  });

  it('may take longer than an agent has to say that it is alive, and that is told', async () => {
    await listen(
      answering(async ({ url }, response) => {
        if (url === '/diff') await sleep(700);
        response.end(url);
      }),
    );
    const waits: number[] = [];
    const waiting = (seconds: number) => void waits.push(seconds);
    expect(await askControlPatiently({ ...page, socketPath }, { ...patience, againMs: 100, waiting })).toBe('/diff');
    expect(waits.length).toBeGreaterThan(2);
  });

  it('has a limit of its own', async () => {
    await listen(answering(({ url }, response) => void (url === '/alive' && response.end())));
    const asked = askControlPatiently({ ...page, socketPath, timeoutMs: 400 }, patience);
    await expect(asked).rejects.toThrow('no answer within 0.4 s');
  });
});
