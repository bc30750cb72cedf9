import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { agentFile } from '../standby/agent-file.ts';
import { showDiff } from './show-diff.ts';

it('an agent that ends while it answers is told as one that has ended', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'nodeplane-diff-'));
  const server = createServer({ keepAlive: false }, ({ url, socket }, response) => {
    if (url === '/alive') response.end('alive\n');
    else socket.destroy();
  });
  try {
    await new Promise<void>((resolve) => server.listen(agentFile(directory, 'sock'), resolve));
    const shown = await showDiff({ directory, repair: true, json: false, progress: () => {} });
    expect(shown).toMatchObject({
      exitCode: 69,
      stdout: '',
      stderr: expect.stringContaining('It ended while it answered'),
    });
  } finally {
    server.close();
    rmSync(directory, { recursive: true });
  }
});
