import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { askControl } from './ask-control.ts';

it('waits for an agent that accepts and says nothing as long as the caller can, and no longer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'nodeplane-control-'));
  const path = join(folder, 'agent.sock');
  const server = createServer((socket) => void socket.on('error', () => {}).resume());
  await new Promise<void>((resolve) => server.listen(path, resolve));
  try {
    await expect(askControl(path, 'GET', '/diff', 100)).rejects.toThrow('no answer within 0.1 s');
  } finally {
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true });
  }
}, 10_000);
