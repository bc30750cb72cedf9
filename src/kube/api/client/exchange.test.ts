import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { exchange } from './exchange.ts';

it('an answer that is cut while nobody reads it ends nothing, and tells whoever reads it then', async () => {
  const server = createServer((_, response) => void response.writeHead(200).write('{'));
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const response = await exchange(new URL(`http://127.0.0.1:${port}`), { method: 'GET' }, undefined).answer;
  response.destroy(new Error('no byte for 60 s'));
  await new Promise((resolve) => response.once('close', resolve));
  await expect(response.toArray()).rejects.toThrow();
});
