import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ApiObject, FakeApiServer, UnreliableApi } from '../../../test/fakes/api-server/index.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { ApiClient } from '../api/client/api-client.ts';
import { createApiClient } from '../api/client/http-client.ts';
import { LeaseKeeper, type LeaseKeeperOptions } from './lease-keeper.ts';

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-lease-'));
let server: FakeApiServer;
let client: ApiClient;
let clock: FakeClock;
let keepers: LeaseKeeper[];
/** What was told: `a acquired`. */
let told: string[];
let underWay: number;

beforeEach(async () => {
  server = new FakeApiServer();
  await server.start();
  server.writeKubeconfig(join(folder, 'kubeconfig'));
  client = counted(await createApiClient({ kubeconfig: join(folder, 'kubeconfig'), userAgent: 'test' }));
  underWay = 0;
  clock = new FakeClock(Date.UTC(2025, 0, 1));
  keepers = [];
  told = [];
});

afterEach(async () => {
  server.misbehave.stallAnswers = false;
  const stopped = keepers.map((keeper) => keeper.stop());
  await clock.advance(20_000);
  await Promise.all(stopped);
  client.close();
  await server.stop();
});

afterAll(() => rmSync(folder, { recursive: true }));

function keep(identity: string, options: Partial<LeaseKeeperOptions> = {}): LeaseKeeper {
  const keeper = new LeaseKeeper({
    client,
    namespace: 'kube-system',
    name: 'agent',
    identity,
    clock,
    random: () => 0,
    ...options,
  });
  keepers.push(keeper);
  keeper.start({
    acquired: () => told.push(`${identity} acquired`),
    lost: (reason) => told.push(`${identity} lost: ${reason}`),
    failed: (error) => told.push(`${identity} failed: ${error.message}`),
  });
  return keeper;
}

const lease = (): ApiObject => server.objects('Lease')[0]!;
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 5 });

/** Lets time pass in steps, with the real network answering after each. */
async function pass(seconds: number): Promise<void> {
  for (let step = 0; step < seconds * 2; step++) {
    await clock.advance(500);
    await answered();
  }
}

/** Until nothing is on its way, but for what the server leaves without an answer. */
async function answered(): Promise<void> {
  const isQuiet = () => underWay === 0 || (server.misbehave.stallAnswers && server.stalled > 0);
  for (let quiet = 0; quiet < 2; quiet = isQuiet() ? quiet + 1 : 0)
    await new Promise((resolve) => setImmediate(resolve));
}

/** Counts what is under way, up to the end of the answer. */
function counted(real: ApiClient): ApiClient {
  return {
    server: real.server,
    close: () => real.close(),
    async send(request) {
      underWay++;
      try {
        const response = await real.send(request);
        return { ...response, body: countedBody(response.body) };
      } catch (error) {
        underWay--;
        throw error;
      }
    },
  };
}

async function* countedBody(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } finally {
    underWay--;
  }
}

describe('a lease', () => {
  it('is made, renewed every two seconds, and given back', async () => {
    const keeper = keep('a');
    await eventually(() => expect(told).toEqual(['a acquired']));
    expect(keeper).toMatchObject({ isHeld: true, holder: 'a' });
    expect(lease()).toMatchObject({
      metadata: { name: 'agent', namespace: 'kube-system' },
      spec: {
        holderIdentity: 'a',
        leaseDurationSeconds: 15,
        acquireTime: '2025-01-01T00:00:00.000001Z',
        renewTime: '2025-01-01T00:00:00.000001Z',
        leaseTransitions: 0,
      },
    });
    await pass(4);
    expect(server.requests.map(({ verb }) => verb)).toEqual(['get', 'create', 'update', 'update']);
    expect(lease().spec).toMatchObject({
      acquireTime: '2025-01-01T00:00:00.000001Z',
      renewTime: '2025-01-01T00:00:04.000003Z',
    });
    await keeper.stop();
    expect(keeper.isHeld).toBe(false);
    expect(lease().spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 0 });
    expect(told).toEqual(['a acquired']);
  });

  it('of another is taken when it was given back, and keeps what others wrote into it', async () => {
    const a = keep('a');
    await eventually(() => expect(told).toEqual(['a acquired']));
    server.apply({
      ...lease(),
      metadata: { ...lease().metadata, labels: { team: 'net' } },
      spec: { ...(lease().spec as object), strategy: 'x' },
    });
    const b = keep('b');
    await pass(3);
    expect(b).toMatchObject({ isHeld: false, holder: 'a' });
    await a.stop();
    await pass(3);
    expect(told).toEqual(['a acquired', 'b acquired']);
    expect(lease()).toMatchObject({
      metadata: { labels: { team: 'net' } },
      spec: { holderIdentity: 'b', leaseDurationSeconds: 15, leaseTransitions: 1, strategy: 'x' },
    });
  });

  it('of another is taken when it was not seen to change for its own duration, whatever its times say', async () => {
    server.apply({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'agent', namespace: 'kube-system' },
      spec: { holderIdentity: 'dead', leaseDurationSeconds: 30, renewTime: '1999-01-01T00:00:00.000000Z' },
    });
    const b = keep('b');
    await pass(29);
    expect(b.isHeld).toBe(false);
    await pass(3);
    expect(told).toEqual(['b acquired']);
  });

  it('is lost when it cannot be renewed for ten seconds, and comes back', async () => {
    const keeper = keep('a');
    await eventually(() => expect(told).toEqual(['a acquired']));
    server.misbehave.answers.push(...Array.from({ length: 6 }, () => ({ status: 500 })));
    await pass(9.5);
    expect(keeper.isHeld).toBe(true);
    await pass(0.5);
    expect(keeper.isHeld).toBe(false);
    expect(told.filter((text) => !text.includes('failed'))).toEqual([
      'a acquired',
      'a lost: the last renewal was sent 10 s ago',
    ]);
    await pass(5);
    expect(told.at(-1)).toBe('a acquired');
    expect(lease().spec).toMatchObject({ leaseTransitions: 0 });
  });

  it('is lost at once when somebody else has got it', async () => {
    keep('a');
    await eventually(() => expect(told).toEqual(['a acquired']));
    server.apply({ ...lease(), spec: { holderIdentity: 'b', leaseDurationSeconds: 15 } });
    await pass(2);
    expect(told).toEqual(['a acquired', 'a lost: "b" holds it']);
  });

  it('is not held by the clock although its loss was not told yet', async () => {
    const keeper = keep('a');
    await eventually(() => expect(told).toEqual(['a acquired']));
    vi.spyOn(clock, 'now').mockReturnValue(clock.now() + 10_000);
    expect(keeper.isHeld).toBe(false);
    expect(told).toEqual(['a acquired']);
    vi.restoreAllMocks();
  });

  it('is renewed after answers that were lost or never came', async () => {
    const keeper = keep('a');
    await eventually(() => expect(told).toEqual(['a acquired']));
    server.misbehave.lostAnswers = 1;
    await pass(2);
    expect(told.at(-1)).toMatch(/^a failed: PUT .* failed: /);
    await pass(2);
    server.misbehave.stallAnswers = true;
    // Tried after two seconds, given up after five more.
    await pass(7);
    server.misbehave.stallAnswers = false;
    await pass(2);
    expect(told).toHaveLength(3);
    expect(keeper.isHeld).toBe(true);
    expect(told.filter((text) => !text.includes('failed'))).toEqual(['a acquired']);
  });

  it('is held from when the write was sent, not from when its answer came', async () => {
    // Done at once, answered after four seconds; the renewals do not arrive.
    const slow = new UnreliableApi(clock, ({ method }) => ({
      arrivals: method === 'PUT' ? [] : [0],
      answerMs: method === 'POST' ? 4000 : 0,
    }));
    const keeper = keep('a', { client: slow });
    await clock.advance(4000);
    expect(told).toEqual(['a acquired']);
    await clock.advance(5999);
    expect(keeper.isHeld).toBe(true);
    await clock.advance(1);
    expect(keeper.isHeld).toBe(false);
  });

  it('is not tried for before the time that an overloaded server asks to wait', async () => {
    server.misbehave.answers.push({ status: 429, retryAfterSeconds: 9 });
    keep('a');
    await pass(8.5);
    expect(server.requests).toHaveLength(1);
    await pass(1);
    expect(told.at(-1)).toBe('a acquired');
  });

  it('that may not be written is a failure that names the permission', async () => {
    server.misbehave.rules = [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get'] }];
    keep('a');
    await eventually(() => expect(told).toHaveLength(1));
    expect(told[0]).toContain('RBAC verb "create" on resource "leases" of API group "coordination.k8s.io"');
  });
});

it.each([
  [{ identity: '' }, 'the identity is empty'],
  [{ durationSeconds: 1.5, renewDeadlineSeconds: 1, retrySeconds: 0.5 }, 'whole seconds, found 1.5'],
  [{ durationSeconds: 10 }, 'the duration (10 s) has to be longer than 10 s'],
  [{ retrySeconds: 9 }, 'the renew deadline (10 s) has to be longer than 1.2 times 9 s'],
  [{ retrySeconds: 0 }, 'more than nothing'],
])('%j is a configuration error', (options, message) => {
  const make = () => new LeaseKeeper({ client, namespace: 'kube-system', name: 'agent', identity: 'a', ...options });
  expect(make).toThrow(expect.objectContaining({ code: 'ERR_CONFIG', message: expect.stringContaining(message) }));
});
