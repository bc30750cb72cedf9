import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { HealthCheckPorts } from '../../../src/agent/index.ts';
import { atOnce, type IpFamily, parseIp } from '../../../src/core/index.ts';
import { endpointsOf, type ServiceHealthCheck, serviceHealthCheck, servicePortsOf } from '../../../src/proxy/index.ts';
import { enterNetns } from '../../../src/sys/index.ts';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { createNamespace, own, removeAll } from '../namespace.ts';

// Health checks as a load balancer sees them: bytes on the wire, both families, the node's own address.

const NODE = { IPv4: '192.0.2.1', IPv6: '2001:db8::1' } as const;
const FAMILIES = ['IPv4', 'IPv6'] as const;

const namespace = createNamespace('health');
namespace.run('ip', 'link', 'set', 'lo', 'up');
namespace.run('ip', 'address', 'add', `${NODE.IPv4}/32`, 'dev', 'lo');
namespace.run('ip', 'address', 'add', `${NODE.IPv6}/128`, 'dev', 'lo', 'nodad');
enterNetns(namespace.path);

let healthy: boolean;
let failures: string[];
let ports: Readonly<Record<IpFamily, HealthCheckPorts>>;

beforeEach(() => {
  healthy = true;
  failures = [];
  const make = (family: IpFamily) =>
    new HealthCheckPorts({
      family,
      isHealthy: () => healthy,
      failed: ({ serviceName }, error) => failures.push(`${serviceName} ${error.code} ${error.facts.address}`),
    });
  ports = { IPv4: make('IPv4'), IPv6: make('IPv6') };
});
afterEach(() => Promise.all(FAMILIES.map((family) => ports[family].close())));
afterAll(removeAll);

/** The health check of a dual-stack Service with that many ready endpoints on this node, and one elsewhere. */
function planned(family: IpFamily, port: number, local: number): ServiceHealthCheck {
  const name = 'shop/web';
  const service = makeService(name, {
    type: 'LoadBalancer',
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: port,
    clusterIP: '10.96.0.10',
    clusterIPs: ['10.96.0.10', 'fd00:96::10'],
  });
  const address = (n: number) => (family === 'IPv4' ? `10.0.0.${n}` : `fd00::${n}`);
  const endpoints = Array.from({ length: local }, (_, i) => ({ addresses: [address(i + 1)], nodeName: 'n1' }));
  const slice = makeSlice(name, [...endpoints, { addresses: [address(99)], nodeName: 'n2' }], { addressType: family });
  const { ports: servicePorts } = servicePortsOf(service, family);
  return serviceHealthCheck(
    servicePorts,
    atOnce(endpointsOf([slice], { family, nodeName: 'n1', ports: servicePorts })),
  )!;
}

async function serve(port: number, local: Readonly<Record<IpFamily, number>>): Promise<void> {
  for (const family of FAMILIES) {
    await ports[family].reconcile({ checks: [planned(family, port, local[family])], addresses: 'all' });
  }
}

/** The whole answer to one request, as it came over the wire; the error's name when nobody answers. */
function ask(host: string, port: number, request = 'GET / HTTP/1.1'): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect({ host, port }, () => socket.write(`${request}\r\nHost: node\r\nConnection: close\r\n\r\n`));
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('close', () => resolve(received));
  });
}

const statusLine = async (host: string, port: number, request?: string) =>
  (await ask(host, port, request)).split('\r\n', 1)[0];

it.each(FAMILIES)('answers what kube-proxy answers, over %s', async (family) => {
  await serve(30999, { IPv4: 2, IPv6: 2 });
  const answer = await ask(NODE[family], 30999);
  const [head, body] = answer.split('\r\n\r\n');
  expect(head!.split('\r\n')).toEqual(
    expect.arrayContaining([
      'HTTP/1.1 200 OK',
      'Content-Type: application/json',
      'X-Content-Type-Options: nosniff',
      'X-Load-Balancing-Endpoint-Weight: 2',
      'Content-Length: 111',
    ]),
  );
  expect(body).toBe(
    '{\n\t"service": {\n\t\t"namespace": "shop",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": 2,\n\t"serviceProxyHealthy": true\n}',
  );
});

it('answers each family with its own endpoints, on every path and method', async () => {
  await serve(30999, { IPv4: 1, IPv6: 0 });
  expect(await statusLine(NODE.IPv4, 30999, 'POST /healthz HTTP/1.1')).toBe('HTTP/1.1 200 OK');
  expect(await statusLine(NODE.IPv6, 30999)).toBe('HTTP/1.1 503 Service Unavailable');
  expect(await ask(NODE.IPv6, 30999, 'GET /any HTTP/1.1')).toContain('\r\nX-Load-Balancing-Endpoint-Weight: 0\r\n');
});

it('is 503 while the proxy does not keep up', async () => {
  await serve(30999, { IPv4: 1, IPv6: 1 });
  healthy = false;
  for (const family of FAMILIES) {
    const answer = await ask(NODE[family], 30999);
    expect(answer).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/);
    expect(answer).toContain('"localEndpoints": 1,\n\t"serviceProxyHealthy": false');
  }
});

it('the sockets of a family are its own: one alone leaves the other’s port closed', async () => {
  await ports.IPv6.reconcile({ checks: [planned('IPv6', 30999, 1)], addresses: 'all' });
  expect(await statusLine(NODE.IPv6, 30999)).toBe('HTTP/1.1 200 OK');
  expect(await ask(NODE.IPv4, 30999)).toBe('ECONNREFUSED');
});

it('follows the Service to another port', async () => {
  await serve(30999, { IPv4: 1, IPv6: 1 });
  await serve(31000, { IPv4: 1, IPv6: 1 });
  for (const family of FAMILIES) {
    expect(await ask(NODE[family], 30999)).toBe('ECONNREFUSED');
    expect(await statusLine(NODE[family], 31000)).toBe('HTTP/1.1 200 OK');
  }
});

/** Another process of this node that holds a port. It inherits the namespace this thread is in. */
async function occupy(port: number): Promise<{ stop(): Promise<void> }> {
  const program = `require('node:net').createServer((socket) => socket.resume().end('somebody else'))
    .listen(${port}, '0.0.0.0', () => process.stdout.write('listens'))`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const disown = own(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return {
    async stop() {
      const ended = once(child, 'exit');
      disown();
      await ended;
    },
  };
}

it('takes a port that another process held, once it is free', async () => {
  const occupier = await occupy(30999);
  await serve(30999, { IPv4: 1, IPv6: 1 });
  expect(failures).toEqual(['shop/web ERR_HEALTH_CHECK_PORT 0.0.0.0']);
  expect(await ask(NODE.IPv4, 30999)).toBe('somebody else');
  expect(await statusLine(NODE.IPv6, 30999)).toBe('HTTP/1.1 200 OK');

  await occupier.stop();
  await serve(30999, { IPv4: 1, IPv6: 1 });
  expect(await statusLine(NODE.IPv4, 30999)).toBe('HTTP/1.1 200 OK');
  expect(failures).toHaveLength(1);
});

it('listens on the given addresses only, and follows them', async () => {
  const checks = [planned('IPv4', 30999, 1)];
  const reconcile = (...addresses: string[]) => ports.IPv4.reconcile({ checks, addresses: addresses.map(parseIp) });
  await reconcile(NODE.IPv4, NODE.IPv6);
  expect(await statusLine(NODE.IPv4, 30999)).toBe('HTTP/1.1 200 OK');
  expect(await ask('127.0.0.1', 30999)).toBe('ECONNREFUSED');
  expect(await ask(NODE.IPv6, 30999)).toBe('ECONNREFUSED');
  await reconcile('127.0.0.1', '192.0.2.99');
  expect(await statusLine('127.0.0.1', 30999)).toBe('HTTP/1.1 200 OK');
  expect(await ask(NODE.IPv4, 30999)).toBe('ECONNREFUSED');
  expect(failures).toEqual(['shop/web ERR_HEALTH_CHECK_PORT 192.0.2.99']);
});
