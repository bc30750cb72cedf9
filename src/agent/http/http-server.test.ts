import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { parseBindAddress } from '../../config/index.ts';
import { type HttpRequest, textAnswer } from './http-listener.ts';
import { HttpServer } from './http-server.ts';

const silent = pino({ level: 'silent' });

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function serve(host: string, port: number, clock = new FakeClock(), hardFail = false, logger = silent): HttpServer {
  const pages = {
    '/ok': () => textAnswer(200, 'ok'),
    '/echo': ({ method, path, query, headers }: HttpRequest) =>
      textAnswer(200, `${method} ${path} ${query.get('a')} ${headers['x-test']}`),
    '/fails': () => {
      throw new Error('secret');
    },
  };
  const server = new HttpServer({
    name: 'test',
    address: parseBindAddress(`${host}:${port}`)!,
    pages,
    hardFail,
    clock,
    logger,
  });
  onTestFinished(() => server.stop());
  return server;
}

it('answers its pages, 404 elsewhere, and keeps the reason of a failure to itself', async () => {
  const port = await freePort();
  await serve('127.0.0.1', port).start();
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return `${response.status} ${await response.text()}`;
  };
  expect(await get('/ok?verbose')).toBe('200 ok');
  expect(await get('/toString')).toBe('404 404 page not found\n');
  expect(await get('/fails')).toBe('500 internal error, see the log\n');
});

it('tells a page method, query and headers of the request', async () => {
  const port = await freePort();
  await serve('127.0.0.1', port).start();
  const response = await fetch(`http://127.0.0.1:${port}/echo?a=b%3Fc`, {
    method: 'PUT',
    headers: { 'X-Test': 'yes' },
  });
  expect(await response.text()).toBe('PUT /echo b?c yes');
});

it('serves IPv6 too when told 0.0.0.0, as Go programs do', async () => {
  const port = await freePort();
  await serve('0.0.0.0', port).start();
  expect((await fetch(`http://127.0.0.1:${port}/ok`)).status).toBe(200);
  expect((await fetch(`http://[::1]:${port}/ok`)).status).toBe(200);
});

it('tries again every 5 s while the port is taken', async () => {
  const port = await freePort();
  const occupier = createServer().listen(port, '127.0.0.1');
  await new Promise((resolve) => occupier.once('listening', resolve));
  const clock = new FakeClock();
  await serve('127.0.0.1', port, clock).start();
  await new Promise((resolve) => occupier.close(resolve));
  await expect(fetch(`http://127.0.0.1:${port}/ok`)).rejects.toThrow();
  await clock.advance(5000);
  await expect.poll(async () => (await fetch(`http://127.0.0.1:${port}/ok`).catch(() => undefined))?.status).toBe(200);
});

it('tells once who is to be looked for while the port is taken', async () => {
  const port = await freePort();
  const occupier = createServer().listen(port, '127.0.0.1');
  await new Promise((resolve) => occupier.once('listening', resolve));
  const clock = new FakeClock();
  const lines: { level: number; remedy?: string }[] = [];
  const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  await serve('127.0.0.1', port, clock, false, logger).start();
  expect(lines).toMatchObject([{ level: 50, remedy: expect.stringContaining(`ss -ltnp 'sport = :${port}'`) }]);
  for (const attempts of [2, 3]) {
    await clock.advance(5000);
    await expect.poll(() => lines.length).toBe(attempts);
  }
  await new Promise((resolve) => occupier.close(resolve));
  await clock.advance(5000);
  await expect.poll(() => lines.map(({ level }) => level)).toEqual([50, 20, 20, 30]);
});

it('gives up at once when not being able to listen is to be fatal', async () => {
  const port = await freePort();
  const occupier = createServer().listen(port, '127.0.0.1');
  await new Promise((resolve) => occupier.once('listening', resolve));
  await expect(serve('127.0.0.1', port, new FakeClock(), true).start()).rejects.toMatchObject({
    code: 'ERR_CONFIG',
    message: `The test cannot listen on 127.0.0.1:${port}`,
  });
  await new Promise((resolve) => occupier.close(resolve));
});

it('does not listen, nor try again, when it was stopped in the middle of an attempt', async () => {
  const port = await freePort();
  const clock = new FakeClock();
  const server = serve('127.0.0.1', port, clock);
  const starting = server.start();
  await server.stop();
  await starting;
  // The port is free, and taken when the next one tries.
  const taker = createServer().listen(port, '127.0.0.1');
  await new Promise((resolve) => taker.once('listening', resolve));
  const second = serve('127.0.0.1', port, clock);
  const failing = second.start();
  await second.stop();
  await failing;
  await new Promise((resolve) => taker.close(resolve));
  await clock.advance(60_000);
  await expect(fetch(`http://127.0.0.1:${port}/ok`)).rejects.toThrow();
});
