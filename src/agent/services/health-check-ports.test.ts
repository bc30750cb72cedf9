import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type NodeplaneError, parseIp } from '../../core/index.ts';
import type { ServiceHealthCheck } from '../../proxy/index.ts';
import { HealthCheckPorts } from './health-check-ports.ts';

/** A loopback address of this process alone, so that a port that was free stays free while tests run side by side. */
const HOST = `127.1.${(process.pid >> 8) & 255}.${process.pid & 255}`;
const LOOPBACK = [parseIp(HOST), parseIp('::1')];

let healthy: boolean;
let failures: { check: ServiceHealthCheck; error: NodeplaneError }[];
let ports: HealthCheckPorts;

beforeEach(() => {
  healthy = true;
  failures = [];
  ports = new HealthCheckPorts({
    family: 'IPv4',
    isHealthy: () => healthy,
    failed: (check, error) => failures.push({ check, error }),
  });
});
afterEach(() => ports.close());

/** Holds a free port until closed. */
async function occupy(): Promise<Server & { readonly port: number }> {
  const server = createServer().listen(0, HOST);
  await new Promise((resolve) => server.once('listening', resolve));
  return Object.assign(server, { port: (server.address() as AddressInfo).port });
}

const release = (server: Server) => new Promise((resolve) => server.close(resolve));

async function freePort(): Promise<number> {
  const server = await occupy();
  await release(server);
  return server.port;
}

const want = (...checks: ServiceHealthCheck[]) => ports.reconcile({ checks, addresses: LOOPBACK });
const check = (port: number, localEndpoints = 1, serviceName = 'shop/web') => ({ serviceName, port, localEndpoints });

/** Status and who answers; undefined when nobody listens. */
async function ask(port: number, path = '/', init?: RequestInit): Promise<string | undefined> {
  const response = await fetch(`http://${HOST}:${port}${path}`, init).catch(() => undefined);
  if (!response) return undefined;
  const body = (await response.json()) as { service: { namespace: string; name: string }; localEndpoints: number };
  return `${response.status} ${body.service.namespace}/${body.service.name} ${body.localEndpoints}`;
}

it('answers in kube-proxy’s words, byte for byte', async () => {
  const port = await freePort();
  await want(check(port, 2));
  const response = await fetch(`http://${HOST}:${port}/healthz`);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'application/json',
    'x-content-type-options': 'nosniff',
    'x-load-balancing-endpoint-weight': '2',
    'content-length': '111',
  });
  expect(await response.text()).toBe(
    '{\n\t"service": {\n\t\t"namespace": "shop",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": 2,\n\t"serviceProxyHealthy": true\n}',
  );
});

it('answers any path and method', async () => {
  const port = await freePort();
  await want(check(port));
  expect(await ask(port, '/some/where?x')).toBe('200 shop/web 1');
  expect(await ask(port, '/', { method: 'POST', body: 'hello' })).toBe('200 shop/web 1');
});

it('is 200 with an endpoint here and a healthy proxy, else 503', async () => {
  const port = await freePort();
  await want(check(port, 0));
  expect(await ask(port)).toBe('503 shop/web 0');
  await want(check(port, 3));
  expect(await ask(port)).toBe('200 shop/web 3');
  healthy = false;
  expect(await ask(port)).toBe('503 shop/web 3');
});

it('takes over new numbers at once, before sockets are settled', async () => {
  const port = await freePort();
  await want(check(port, 1));
  const settled = want(check(port, 0));
  expect(await ask(port)).toBe('503 shop/web 0');
  await settled;
});

it('moves, swaps and closes ports', async () => {
  const [a, b, c] = [await freePort(), await freePort(), await freePort()];
  await want(check(a, 1, 'shop/a'), check(b, 1, 'shop/b'));
  await want(check(b, 1, 'shop/a'), check(a, 1, 'shop/b'));
  expect([await ask(a), await ask(b)]).toEqual(['200 shop/b 1', '200 shop/a 1']);
  await want(check(c, 1, 'shop/a'));
  expect([await ask(a), await ask(b), await ask(c)]).toEqual([undefined, undefined, '200 shop/a 1']);
  expect(failures).toEqual([]);
});

it('ends with what was wanted last, however fast the wishes come', async () => {
  const [a, b] = [await freePort(), await freePort()];
  void want(check(a));
  void want(check(b));
  void want();
  await want(check(a, 5));
  expect([await ask(a), await ask(b)]).toEqual(['200 shop/web 5', undefined]);
  expect(failures).toEqual([]);
});

it('tells once that a port is taken, serves the others, and takes it when it is free', async () => {
  const occupier = await occupy();
  const other = await freePort();
  const wanted = [check(occupier.port), check(other, 1, 'shop/other')];
  await want(...wanted);
  await want(...wanted);
  expect(await ask(other)).toBe('200 shop/other 1');
  expect(failures).toHaveLength(1);
  expect(failures[0]!.check).toBe(wanted[0]);
  expect(failures[0]!.error).toMatchObject({
    code: 'ERR_HEALTH_CHECK_PORT',
    message: `Listen for health checks of Service "shop/web" on ${HOST}:${occupier.port}: EADDRINUSE; free the port or address, the next sync tries again`,
    facts: { service: 'shop/web', address: HOST, port: occupier.port },
  });

  await release(occupier);
  await want(...wanted);
  expect(await ask(occupier.port)).toBe('200 shop/web 1');
  expect(failures).toHaveLength(1);
});

it('tells again when a port is lost a second time', async () => {
  const occupier = await occupy();
  await want(check(occupier.port));
  await want();
  await want(check(occupier.port));
  expect(failures).toHaveLength(2);
  await release(occupier);
});

it('closes although a client keeps its connection open', async () => {
  const port = await freePort();
  await want(check(port));
  const socket = connect(port, HOST);
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await ports.close();
  await closed;
  expect(await ask(port)).toBeUndefined();
});

it('opens no more ports than the process has descriptors for, says so once, and makes use of the room that comes', async () => {
  ports = new HealthCheckPorts({
    family: 'IPv4',
    isHealthy: () => true,
    failed: (check, error) => failures.push({ check, error }),
    mostPorts: 1,
  });
  const [first, second] = [check(await freePort(), 1, 'shop/a'), check(await freePort(), 1, 'shop/b')];
  await want(first, second);
  await want(first, second);
  expect([await ask(first.port), await ask(second.port)]).toEqual(['200 shop/a 1', undefined]);
  expect(failures.map(({ error }) => error.message)).toEqual([
    expect.stringContaining('1 are open, more would leave no descriptors for the rules; raise the limit of open files'),
  ]);
  await want(second);
  expect(await ask(second.port)).toBe('200 shop/b 1');
});
