import { Gauge, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import type { Readiness } from '../part.ts';
import type { HttpAnswer } from './http-listener.ts';
import { healthPages, metricsPages } from './pages.ts';

const registry = new Registry();
new Gauge({ name: 'answer', help: 'It.', registers: [registry] }).set(42);

const TEXT = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' };

function make(overrides: Partial<Parameters<typeof metricsPages>[0]> = {}) {
  const pages = metricsPages({
    mode: 'iptables',
    registry,
    component: 'kube-proxy',
    configz: () => '{"kubeproxy.config.k8s.io":{"kind":"KubeProxyConfiguration"}}',
    flagz: () => ({ v: '2', 'cluster-cidr': '10.0.0.0/8' }),
    statusz: () => ({
      startedAt: Date.UTC(2026, 10, 6, 15, 1, 2),
      upMs: Date.UTC(2026, 10, 7, 18, 5, 9) - Date.UTC(2026, 10, 6, 15, 1, 2),
      version: '1.36.2',
      nodeVersion: 'v20.1.0',
    }),
    ...overrides,
  });
  const get = async (url: string, { method = 'GET', headers = {} } = {}): Promise<HttpAnswer> => {
    const { pathname, searchParams } = new URL(url, 'http://localhost');
    return pages[pathname]!({ method, path: pathname, query: searchParams, headers });
  };
  return { pages, get };
}

it.each<[string, HttpAnswer]>([
  ['/healthz', { status: 200, headers: TEXT, body: 'ok' }],
  ['/healthz/ping', { status: 200, headers: TEXT, body: 'ok' }],
  ['/healthz?verbose', { status: 200, headers: TEXT, body: '[+]ping ok\nhealthz check passed\n' }],
  ['/proxyMode', { status: 200, headers: TEXT, body: 'iptables' }],
  [
    '/configz',
    {
      status: 200,
      headers: { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff' },
      body: '{"kubeproxy.config.k8s.io":{"kind":"KubeProxyConfiguration"}}',
    },
  ],
  [
    '/metrics',
    {
      status: 200,
      headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
      body: '# HELP answer It.\n# TYPE answer gauge\nanswer 42\n',
    },
  ],
])('%s answers as kube-proxy does', async (url, expected) => {
  expect(await make().get(url)).toEqual(expected);
});

it('serves exactly the paths of kube-proxy without profiling', () => {
  expect(Object.keys(make().pages).sort()).toEqual(
    ['/configz', '/flagz', '/healthz', '/healthz/ping', '/metrics', '/metrics/slis', '/proxyMode', '/statusz'].sort(),
  );
});

it('/metrics/slis counts how often /healthz was asked, until DELETE forgets it', async () => {
  const { get } = make();
  const samples = async () => (await get('/metrics/slis')).body.split('\n').filter((line) => /^[a-z]/.test(line));
  expect(await samples()).toEqual([]);
  await get('/healthz');
  await get('/healthz?verbose');
  const expected = [
    'kubernetes_healthcheck{name="ping",type="healthz"} 1',
    'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 2',
  ];
  expect(await samples()).toEqual(expected);
  expect(await get('/metrics/slis', { method: 'DELETE' })).toEqual({
    status: 200,
    headers: TEXT,
    body: 'metrics reset\n',
  });
  expect(await samples()).toEqual([]);
});

it('/flagz lists the flags by name', async () => {
  expect((await make().get('/flagz')).body).toMatch(
    /^\nkube-proxy flags\nWarning: .+\.\n\ncluster-cidr=10\.0\.0\.0\/8\nv=2\n$/,
  );
});

it('/statusz tells what runs and since when', async () => {
  const { status, headers, body } = await make().get('/statusz');
  expect({ status, headers }).toEqual({ status: 200, headers: TEXT });
  expect(body.replace(/Warning: .*\n/, '')).toBe(`
kube-proxy statusz

Started: Fri Nov  6 15:01:02 UTC 2026
Up: 27 hr 04 min 07 sec
Node.js version: v20.1.0
Binary version: 1.36.2
Paths: /configz /flagz /healthz /healthz/ping /metrics /metrics/slis /proxyMode /statusz
`);
});

it.each<[string | undefined, number]>([
  [undefined, 200],
  ['*/*', 200],
  ['text/html, text/plain;q=0.5', 200],
  ['application/json', 406],
  ['application/json;as=Statusz;g=config.k8s.io;v=v1beta1', 406],
])('the z-pages are text: Accept %s gets %s', async (accept, status) => {
  const headers = accept === undefined ? {} : { accept };
  for (const path of ['/flagz', '/statusz']) expect((await make().get(path, { headers })).status).toBe(status);
});

it('has no z-pages when they are switched off', () => {
  const { component, mode, configz } = { component: 'kube-proxy', mode: 'iptables', configz: () => '{}' } as const;
  const paths = Object.keys(metricsPages({ component, mode, configz, registry }));
  expect(paths).not.toContain('/flagz');
  expect(paths).not.toContain('/statusz');
});

it('the health server answers /healthz and /livez, which it counts, and /readyz', () => {
  const counted: string[] = [];
  let parts: readonly Readiness[] = [{ name: 'services', reason: undefined }];
  const answer = (status: 200 | 503) => ({ status, headers: {}, body: String(status) });
  const pages = healthPages({
    health: { healthz: () => answer(503), livez: () => answer(200) },
    countAnswer: (path, status) => counted.push(`${path} ${status}`),
    readiness: () => parts,
  });
  const request = { method: 'GET', path: '', query: new URLSearchParams(), headers: {} };
  expect(Object.entries(pages).map(([path, page]) => [path, page(request)])).toEqual([
    ['/healthz', answer(503)],
    ['/livez', answer(200)],
    ['/readyz', expect.objectContaining({ status: 200, body: '[+]services ok\nreadyz check passed\n' })],
  ]);
  parts = [...parts, { name: 'cni', reason: 'no\u001b[31m range' }];
  expect(pages['/readyz']!(request)).toMatchObject({
    status: 503,
    body: '[+]services ok\n[-]cni failed: no\\u001b[31m range\nreadyz check failed\n',
  });
  expect(counted).toEqual(['healthz 503', 'livez 200']);
});
