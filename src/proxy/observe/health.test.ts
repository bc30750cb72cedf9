import { beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { makeNode } from '../../../test/fakes/service-objects.ts';
import { SYNC_FINISHED } from '../../../test/samples/sync-finished.ts';
import { type IpFamily, NodeplaneError } from '../../core/index.ts';
import type { ProxyEvent, ProxyEventBody } from '../sync/index.ts';
import { ProxyHealth } from './health.ts';

const START = Date.parse('2026-11-20T15:21:08.010Z');
const TIMEOUT = 60_000;

let clock: FakeClock;
let health: ProxyHealth;

beforeEach(() => {
  clock = new FakeClock(START);
  health = new ProxyHealth({ clock, timeoutMs: TIMEOUT });
});

function tell(body: ProxyEventBody, family: IpFamily = 'IPv4'): void {
  health.observe({ family, at: clock.wallTime(), ...body } as ProxyEvent);
}

const QUEUED: ProxyEventBody = { kind: 'queued', reason: 'change' };
const STARTED: ProxyEventBody = { kind: 'syncStarted', full: false };
const FAILED: ProxyEventBody = {
  kind: 'syncFailed',
  full: false,
  seconds: 0,
  error: 'no',
  stage: 'commit',
  retryInMs: 1,
};

describe('answers', () => {
  it('are byte for byte those of kube-proxy', async () => {
    health.nodeChanged(makeNode('n1'));
    tell({ kind: 'started' }, 'IPv6');
    tell({ kind: 'started' }, 'IPv4');
    await clock.advance(990);
    tell(STARTED, 'IPv6');
    tell(SYNC_FINISHED, 'IPv6');
    await clock.advance(2_100);
    expect(health.healthz()).toEqual({
      status: 200,
      headers: { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff' },
      body: '{"lastUpdated":"2026-11-20T15:21:11.1Z","currentTime":"2026-11-20T15:21:11.1Z","nodeEligible":true,"healthy":true,"status":{"IPv4":{"lastUpdated":"2026-11-20T15:21:08.01Z","healthy":true},"IPv6":{"lastUpdated":"2026-11-20T15:21:09Z","healthy":true}}}',
    });
    expect(health.livez()).toMatchObject({
      status: 200,
      body: '{"lastUpdated":"2026-11-20T15:21:11.1Z","currentTime":"2026-11-20T15:21:11.1Z","healthy":true,"status":{"IPv4":{"lastUpdated":"2026-11-20T15:21:08.01Z","healthy":true},"IPv6":{"lastUpdated":"2026-11-20T15:21:09Z","healthy":true}}}',
    });
  });

  it('show no status before anything is known, and are good', () => {
    expect(health.livez()).toMatchObject({
      status: 200,
      body: '{"lastUpdated":"2026-11-20T15:21:08.01Z","currentTime":"2026-11-20T15:21:08.01Z","healthy":true}',
    });
  });

  it('show the newest success instead of now when they are bad, and which family it is', async () => {
    tell({ kind: 'started' }, 'IPv4');
    await clock.advance(1_000);
    tell({ kind: 'started' }, 'IPv6');
    tell(QUEUED, 'IPv6');
    await clock.advance(TIMEOUT);
    const { status, body } = health.livez();
    expect(status).toBe(503);
    expect(JSON.parse(body)).toEqual({
      lastUpdated: '2026-11-20T15:21:09.01Z',
      currentTime: '2026-11-20T15:22:09.01Z',
      healthy: false,
      status: {
        IPv4: { lastUpdated: '2026-11-20T15:21:08.01Z', healthy: true },
        IPv6: { lastUpdated: '2026-11-20T15:21:09.01Z', healthy: false },
      },
    });
  });

  it('show the zero time of Go where nothing ever succeeded', async () => {
    tell(QUEUED);
    await clock.advance(TIMEOUT);
    expect(JSON.parse(health.livez().body)).toMatchObject({
      lastUpdated: '0001-01-01T00:00:00Z',
      status: { IPv4: { lastUpdated: '0001-01-01T00:00:00Z', healthy: false } },
    });
  });
});

describe('health', () => {
  it('is lost when a wanted sync does not come in time, counted from the oldest request', async () => {
    tell(QUEUED);
    await clock.advance(TIMEOUT - 1);
    tell(QUEUED);
    expect(health.isHealthy()).toBe(true);
    await clock.advance(1);
    expect(health.isHealthy()).toBe(false);
    tell(STARTED);
    expect(health.isHealthy()).toBe(false);
    tell(SYNC_FINISHED);
    expect(health.isHealthy()).toBe(true);
    await clock.advance(TIMEOUT * 10);
    expect(health.isHealthy()).toBe(true);
  });

  it('is lost when syncs keep failing, whether asked for again or not', async () => {
    tell(QUEUED);
    tell(STARTED);
    tell(FAILED);
    await clock.advance(TIMEOUT / 2);
    tell(STARTED);
    tell(FAILED);
    await clock.advance(TIMEOUT / 2);
    expect(health.isHealthy()).toBe(false);
  });

  it('is lost when a sync hangs that nobody asked for', async () => {
    tell(STARTED);
    await clock.advance(TIMEOUT);
    expect(health.isHealthy()).toBe(false);
  });

  it('does not forget a request that came during a sync', async () => {
    tell(QUEUED);
    tell(STARTED);
    tell(QUEUED);
    tell(SYNC_FINISHED);
    await clock.advance(TIMEOUT);
    expect(health.isHealthy()).toBe(false);
  });
});

describe('a node that shall get no traffic', () => {
  it.each([
    ['is unknown', undefined],
    [
      'is being deleted',
      { ...makeNode('n1'), metadata: { ...makeNode('n1').metadata, deletionTimestamp: '2026-11-20T15:00:00Z' } },
    ],
    [
      'is to be removed by the autoscaler',
      makeNode('n1', { spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler' }] } }),
    ],
  ])('because it %s fails /healthz alone, and comes back', (_, node) => {
    tell({ kind: 'started' });
    health.nodeChanged(node);
    const { status, body } = health.healthz();
    expect(status).toBe(503);
    expect(JSON.parse(body)).toMatchObject({ nodeEligible: false, healthy: true });
    expect(health.livez().status).toBe(200);
    health.nodeChanged(makeNode('n1', { spec: { taints: [{ key: 'other' }] } }));
    expect(health.healthz().status).toBe(200);
  });
});

it.each([-86_400_000, 86_400_000])('does not judge by the calendar, moved by %i ms', async (byMs) => {
  tell(QUEUED);
  clock.setCalendar(byMs);
  await clock.advance(TIMEOUT - 1);
  expect(health.isHealthy()).toBe(true);
  await clock.advance(1);
  expect(health.isHealthy()).toBe(false);
  tell(STARTED);
  tell(SYNC_FINISHED);
  expect(health.isHealthy()).toBe(true);
  expect(health.livez().body).toContain(new Date(clock.wallTime()).toISOString().slice(0, 19));
});

describe('what a restart does not cure', () => {
  const held = new NodeplaneError('ERR_IPTABLES_LOCK', 'held');

  it('a lock of another process leaves /livez green and makes /healthz red in time', async () => {
    health.nodeChanged(makeNode('n1'));
    tell(QUEUED);
    tell(STARTED);
    tell({ ...FAILED, error: held } as ProxyEventBody);
    expect([health.livez().status, health.healthz().status]).toEqual([200, 200]);
    await clock.advance(TIMEOUT);
    expect([health.livez().status, health.healthz().status]).toEqual([200, 503]);
    tell(STARTED);
    tell(FAILED);
    expect(health.livez().status).toBe(503);
    tell(SYNC_FINISHED);
    expect([health.livez().status, health.healthz().status]).toEqual([200, 200]);
  });

  it('a way into the kernel that is still looked for keeps load balancers away', () => {
    health.nodeChanged(makeNode('n1'));
    health.setPrepared(false);
    expect([health.livez().status, health.healthz().status, health.isHealthy()]).toEqual([200, 503, false]);
    expect(JSON.parse(health.healthz().body)).toMatchObject({ nodeEligible: true, healthy: false });
    health.setPrepared(true);
    expect(health.healthz().status).toBe(200);
  });
});
