import { beforeAll, describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeServiceStore, makeSlice } from '../../../test/fakes/service-objects.ts';
import { parseIp } from '../../core/index.ts';
import { Planner } from '../../proxy/index.ts';
import type { HttpAnswer, HttpRequest } from '../http/http-listener.ts';
import { collectStatus } from './collect/collect.ts';
import { StatusRecorder } from './collect/recorder.ts';
import { ownCommands } from './own-commands.ts';
import { servicesText, serviceText } from './show/services-text.ts';
import { statusText } from './show/status-text.ts';
import { STATUS_LIMITS, type Status } from './status.ts';
import { StatusPage } from './status-page.ts';

const MANY = 10_000;
const name = (i: number) => `shop/web-${String(i).padStart(5, '0')}`;
const clusterIp = (i: number) => `10.96.${i >> 8}.${i & 255}`;

const store = new FakeServiceStore();
const clock = new FakeClock();
const recorder = new StatusRecorder(clock);
const node = {
  localDetector: { kind: 'none' as const },
  masqueradeMark: 0x4000,
  masqueradeAll: false,
  nodePortAddresses: 'all' as const,
  nodeIp: parseIp('192.168.1.1'),
};
const planner = new Planner({ family: 'IPv4', nodeName: 'n1', node });
const commands = ownCommands({ metrics: '127.0.0.1:11249', lockDir: '/run/nodeplane', argv: [] });
const page = new StatusPage(
  (view) =>
    collectStatus(
      {
        node: 'n1',
        version: '1.2.3',
        mode: 'nftables',
        clock,
        recorder,
        families: () => [
          { family: 'IPv4', ports: planner.plan.ports, explain: (service) => planner.explain(service, store) },
        ],
        healthy: () => true,
        standsByFor: () => '',
        api: undefined,
        manifests: '/etc/manifests',
        routes: undefined,
        pods: () => ({ lacks: '', elsewhere: '', obstacles: [], differences: [] }),
        leftRoutes: () => '',
        leftNetwork: () => '',
        addresses: undefined,
        ports: { health: '127.0.0.1:10256', metrics: '127.0.0.1:11249' },
        commands,
        ruleChanges: () => [
          {
            at: clock.now() - 180_000,
            program: 'fire<b>walld',
            pid: 812,
            what: 'removed chain inet x y',
            changes: [],
            count: 2,
          },
        ],
        began: clock.now(),
      },
      view,
    ),
  commands,
);

beforeAll(async () => {
  for (let i = 0; i < MANY; i++) {
    const endpoints = Array.from({ length: 10 }, (_, at) => `10.244.${i & 255}.${at + 1}`);
    store.put(name(i), endpoints, { clusterIP: clusterIp(i) });
  }
  // Nobody serves one, and of one the only endpoint runs elsewhere.
  store.put(name(7000), [], { clusterIP: clusterIp(7000) });
  store.put(name(6000), ['10.244.0.1'], { clusterIP: clusterIp(6000), internalTrafficPolicy: 'Local' });
  store.slicesByService.set(name(8000), [
    makeSlice(name(8000), [
      { addresses: ['10.244.9.1'], nodeName: 'n1' },
      { addresses: ['10.244.9.2'], conditions: { ready: false } },
    ]),
  ]);
  await planner.rebuild(store);
  recorder.observe({
    kind: 'serviceProblem',
    family: 'IPv4',
    at: 0,
    serviceName: name(5000),
    problems: ['<b>spec</b>\u001b[2J'],
  });
  recorder.observe({
    kind: 'leftOut',
    family: 'IPv4',
    at: 0,
    ports: [{ key: `${name(4000)}:/TCP`, name: name(4000), reason: 'No space left on device' }],
  });
});

const ask = async (query: string, more: Partial<HttpRequest> = {}): Promise<HttpAnswer> =>
  page.local['/status']!({
    method: 'GET',
    path: '/status',
    query: new URLSearchParams(query),
    headers: {},
    remoteAddress: '127.0.0.1',
    ...more,
  });
const status = async (query: string) => JSON.parse((await ask(`format=json&${query}`)).body) as Status;
const names = ({ services }: Status) => services.services.map((service) => service.name);

describe('a list of 10,000 Services', () => {
  it('is told in pages, those to look at first', async () => {
    const first = await status('');
    expect(first.services).toMatchObject({ total: MANY, matched: MANY, page: 1, pages: 100 });
    expect(names(first)).toHaveLength(STATUS_LIMITS.servicesOnPage);
    expect(names(first).slice(0, 5)).toEqual([4000, 5000, 7000, 6000, 0].map(name));
    const last = await status('page=100');
    expect(names(last).at(-1)).toBe(name(MANY - 1));
    expect(names(await status('page=1e9'))).toEqual(names(last));
    for (const odd of ['-1', '0', 'x', '1.5', 'Infinity']) {
      expect((await status(`page=${odd}`)).services.page).toBe(1);
    }
  });

  it.each<[string, readonly number[]]>([
    ['q=web-0123', Array.from({ length: 10 }, (_, i) => 1230 + i)],
    [`q=${clusterIp(300)}`, [300]],
    ['q=10.244.255.3', Array.from({ length: 39 }, (_, i) => 255 + 256 * i)],
    [`q=${name(42)}`, [42]],
    ['q=nobody', []],
  ])('is searched: %s', async (query, found) => {
    const { services, ...rest } = await status(query);
    expect(services.matched).toBe(found.length);
    expect(names({ services, ...rest })).toEqual(found.map(name));
  });

  it('makes a page of bounded size', async () => {
    const { body } = await ask('');
    expect(body.match(/<details/g)).toHaveLength(STATUS_LIMITS.servicesOnPage);
    expect(body.length).toBeLessThan(500_000);
    expect(body).toContain('page 1 of 100');
  });

  it('lets others run in between', async () => {
    let turns = 0;
    let done = false;
    const count = () => {
      turns++;
      if (!done) setImmediate(count);
    };
    setImmediate(count);
    await ask('page=50');
    done = true;
    expect(turns).toBeGreaterThan(1);
  });
});

it('says of each endpoint why it is used or not', async () => {
  const { services, takenAt } = await status(`q=${name(8000)}`);
  const [port] = services.services[0]!.ports;
  expect(port).toMatchObject({
    endpointsTotal: 2,
    endpointsUsed: 1,
    internalVerdict: 'forward',
    externalVerdict: null,
  });
  expect(port!.endpoints).toEqual([
    { address: '10.244.9.1', port: 8080, here: true, used: true, cluster: 'ready', local: null },
    { address: '10.244.9.2', port: 8080, here: false, used: false, cluster: 'not-ready', local: null },
  ]);
  const text = serviceText(services.services[0]!, takenAt, [
    {
      family: 'IPv4',
      port: 80,
      protocol: 'TCP',
      total: 3,
      isMore: false,
      endpoints: [{ endpoint: '10.244.9.9:8080', connections: 3 }],
    },
  ]);
  expect(text).toMatch(/✓ {2}10\.244\.9\.1:8080 {2}on this node {2}0 connections {2}ready\n/);
  expect(text).toMatch(/✗ 3 connections to 10\.244\.9\.9:8080, which is no endpoint any more\n/);
});

it('tells who else changed rules', async () => {
  expect(statusText(await status(''))).toContain(
    'Rules were changed by others:\n  3 min ago  fire<b>walld (pid 812)  removed chain inet x y, 2 times\n',
  );
  const { body } = await ask('');
  expect(body).toContain('fire&lt;b&gt;walld (pid 812)');
  expect(body).toContain('<code>nodeplane status --address 127.0.0.1:11249</code>');
});

it('tells problems last, each with the command that tells more, and names as text', async () => {
  const all = await status('');
  const text = statusText(all);
  expect(text).toMatch(/\n✗ +Services here +9996 of 10000 /);
  expect(text.split('\n').slice(-6)).toEqual([
    'PROBLEMS: 2',
    `  ✗ ${name(4000)} is not programmed in IPv4: No space left on device`,
    `      nodeplane services ${name(4000)} --address 127.0.0.1:11249`,
    `  ✗ ${name(5000)}, IPv4: <b>spec</b>\\u001b[2J`,
    `      nodeplane services ${name(5000)} --address 127.0.0.1:11249`,
    '',
  ]);
  expect(servicesText(all)).toMatch(/^10000 Services, page 1 of 100 \(--page\)\n/);
  const { body } = await ask('');
  expect(body).toContain('&lt;b&gt;spec&lt;/b&gt;\\u001b[2J');
  expect(body).not.toContain('<b>');
});

describe('an answer', () => {
  it('is HTML unless JSON is asked for', async () => {
    const type = async (query: string, accept?: string) =>
      (await ask(query, { headers: { accept } })).headers['Content-Type'];
    expect(await type('')).toBe('text/html; charset=utf-8');
    expect(await type('', 'text/html,application/json')).toBe('text/html; charset=utf-8');
    expect(await type('', 'application/json')).toBe('application/json');
    expect(await type('format=html', 'application/json')).toBe('text/html; charset=utf-8');
  });

  it('is for clients on this machine, and only read', async () => {
    expect((await ask('', { remoteAddress: '192.168.1.9' })).status).toBe(403);
    expect((await ask('', { method: 'POST' })).status).toBe(405);
  });

  it('forbids scripts, frames and whatever comes from elsewhere', async () => {
    const { headers, body } = await ask('');
    expect(headers['Content-Security-Policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
    expect(body).not.toMatch(/<script|https?:/);
  });

  it('is made once for all who ask for the same meanwhile', async () => {
    const answers = await Promise.all([ask('q=x'), ask('q=x'), ask('q=y')]);
    expect(answers[0]).toBe(answers[1]);
    expect(answers[0]).not.toBe(answers[2]);
  });

  it('shows a search as it was typed', async () => {
    expect((await ask('q=%22%3E%3Cscript%3E')).body).toContain('value="&quot;&gt;&lt;script&gt;"');
  });
});
