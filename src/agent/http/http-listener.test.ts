import { EventEmitter, once } from 'node:events';
import { createServer, type Server as HttpServer } from 'node:http';
import { type AddressInfo, connect, Server, type Socket } from 'node:net';
import { constants } from 'node:os';
import { expect, it, onTestFinished } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { type HttpBounds, HttpConnections } from './http-connections.ts';
import { type HttpAnswer, listenHttp, textAnswer } from './http-listener.ts';
import { keepListening } from './keep-listening.ts';

/** A bound that only a hang misses. */
const SOON = { timeout: 20_000 };

// Real sockets on loopback. A client is an address: 127.0.0.1, 127.0.0.2, ...

/** Listens at a free port with these bounds. */
async function serve(bounds: Partial<HttpBounds>, answer: () => HttpAnswer = () => textAnswer(200, 'ok')) {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  const connections = new HttpConnections(bounds);
  const listener = await listenHttp({ host: '127.0.0.1', port, ipv6Only: false, answer, failed: fail, connections });
  onTestFinished(() => listener.close());
  return { port, connections };
}

function fail(error: Error): void {
  throw error;
}

/** A connection from 127.0.0.`client`. */
async function dial({ port }: { readonly port: number }, client: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${client}` });
  socket.on('error', () => {});
  socket.on('data', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** The same, once the server has accepted it. */
async function open(server: Awaited<ReturnType<typeof serve>>, client: number): Promise<Socket> {
  const { connections } = server;
  const before = connections.size + connections.evicted;
  const socket = await dial(server, client);
  await expect.poll(() => connections.size + connections.evicted, SOON).toBeGreaterThan(before);
  return socket;
}

const ended = (socket: Socket) => expect.poll(() => socket.closed || socket.readableEnded, SOON).toBe(true);
const ask = (socket: Socket): Promise<string> =>
  new Promise((resolve) => {
    socket.once('data', (data) => resolve(String(data).slice(0, 15)));
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  });

it('makes room for one more connection of a client at its own expense', async () => {
  const server = await serve({ connectionsOfClient: 2 });
  const other = await open(server, 9);
  const [first, second] = [await open(server, 1), await open(server, 1)];
  const third = await open(server, 1);
  await ended(first);
  expect(server.connections).toMatchObject({ size: 3, evicted: 1 });
  for (const socket of [other, second, third]) expect(await ask(socket)).toBe('HTTP/1.1 200 OK');
});

it('makes room for a client at the expense of who holds the most', async () => {
  const server = await serve({ connections: 4 });
  const probe = await open(server, 9);
  const [first, ...others] = [await open(server, 1), await open(server, 1), await open(server, 2)];
  const newcomer = await open(server, 3);
  await ended(first!);
  for (const socket of [probe, ...others, newcomer]) expect(await ask(socket)).toBe('HTTP/1.1 200 OK');
  // Now each has one: the oldest goes.
  await open(server, 4);
  await ended(probe);
});

it('spares who is being answered while others wait', async () => {
  let release: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let asked = 0;
  const server = await serve({ connectionsOfClient: 2 }, (async () => {
    asked++;
    await held;
    return textAnswer(200, 'ok');
  }) as unknown as () => HttpAnswer);
  const busy = await open(server, 1);
  const answer = ask(busy);
  await expect.poll(() => asked, SOON).toBe(1);
  const idle = await open(server, 1);
  await open(server, 1);
  await ended(idle);
  release();
  expect(await answer).toBe('HTTP/1.1 200 OK');
});

it('ends who sends headers without end, a body without end, nothing, or headers beyond measure', async () => {
  const server = await serve({ headersMs: 200, requestMs: 400, checkMs: 50, headerBytes: 1000 });
  const silent = await dial(server, 1);
  const slow = await dial(server, 2);
  slow.write('GET / HTTP/1.1\r\nHost: x\r\n');
  const drip = setInterval(() => slow.write('X: y\r\n'), 50);
  onTestFinished(() => clearInterval(drip));
  const body = await dial(server, 3);
  body.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n');
  const pour = setInterval(() => body.write('z'), 50);
  onTestFinished(() => clearInterval(pour));
  const large = await dial(server, 4);
  expect(
    await new Promise((resolve) => {
      large.once('data', (data) => resolve(String(data).slice(0, 12)));
      large.write(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(2000)}\r\n\r\n`);
    }),
  ).toBe('HTTP/1.1 431');
  for (const socket of [silent, slow, body, large]) await ended(socket);
  await expect.poll(() => server.connections.size, SOON).toBe(0);
});

it('cuts who sends requests without waiting for answers, and makes no more than a few of them', async () => {
  let made = 0;
  const server = await serve({ requestsWaiting: 4 }, () => {
    made++;
    return textAnswer(200, 'x'.repeat(10_000));
  });
  const [greedy, other] = [await open(server, 1), await open(server, 2)];
  greedy.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20_000));
  await ended(greedy);
  await expect.poll(() => server.connections.size, SOON).toBe(1);
  expect(made).toBeLessThan(10);
  expect(server.connections.evicted).toBe(1);
  // One after the other is what a connection is kept open for.
  for (let i = 0; i < 10; i++) expect(await ask(other)).toBe('HTTP/1.1 200 OK');
});

it('ends who does not take its answer', async () => {
  const server = await serve({ answerMs: 200 }, () => textAnswer(200, 'x'.repeat(50_000_000)));
  const socket = await open(server, 1);
  socket.removeAllListeners('data');
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await expect.poll(() => server.connections.size, SOON).toBe(0);
});

it('an answer that HTTP cannot carry costs its connection, not the process', async () => {
  const { port } = await serve({}, () => ({ status: 200, headers: { bad: 'a\nb' }, body: '' }));
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
});

it('counts the addresses an IPv6 client can choose from as one client', async () => {
  const connections = new HttpConnections({ connectionsOfClient: 2 });
  const server = new Server();
  connections.watch(server as HttpServer);
  const from = (remoteAddress: string) => {
    const socket = Object.assign(new EventEmitter(), { remoteAddress, destroy: () => gone.push(remoteAddress) });
    server.emit('connection', socket as never);
  };
  const gone: string[] = [];
  for (const address of ['2001:db8::1', '2001:db8::ffff:2', '2001:db8:0:1::1', '2001:db8::3']) from(address);
  expect(gone).toEqual(['2001:db8::1']);
});

it('goes on listening after accept has failed, tells it once, and leaves time between its attempts', async () => {
  const clock = new FakeClock();
  const server = createServer((_, response) => response.end('ok'));
  const told: (string | undefined)[] = [];
  let listens = 0;
  const listen = () => {
    listens++;
    // The second attempt fails too.
    if (listens === 2) server.emit('error', Object.assign(new Error('accept'), { code: 'ENFILE' }));
    else server.listen(0, '127.0.0.1');
  };
  const stop = await keepListening({ server, listen, clock, failed: ({ code }) => told.push(code) });
  // What libuv calls: node makes an `error` event of it.
  const { _handle: handle } = server as unknown as { _handle: { onconnection(status: number): void } };
  handle.onconnection(-constants.errno.EMFILE);
  expect([server.listening, listens]).toEqual([false, 1]);
  await clock.advance(1000);
  expect([server.listening, listens]).toEqual([false, 2]);
  await clock.advance(1000);
  await expect.poll(() => server.listening, SOON).toBe(true);
  expect([listens, told]).toEqual([3, ['EMFILE']]);
  stop();
  expect(server.listening).toBe(false);
  server.emit('error', new Error('late'));
  await clock.advance(10_000);
  expect(listens).toBe(3);
});
