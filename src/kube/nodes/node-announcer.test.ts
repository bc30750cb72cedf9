import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ApiObject, apiNode, FakeApiServer } from '../../../test/fakes/api-server/index.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { ApiClient } from '../api/client/api-client.ts';
import { createApiClient } from '../api/client/http-client.ts';
import { decodeObject } from '../objects/kind.ts';
import { KINDS } from '../objects/kinds.ts';
import { FLANNEL_ANNOTATIONS } from '../objects/known-names.ts';
import { type AnnouncerEvent, NodeAnnouncer } from './node-announcer.ts';

const { publicIp, publicIpv6, backendType } = FLANNEL_ANNOTATIONS;
const FOREIGN = { 'example.com/note': 'of somebody else' };

const NETWORK_IS_UP = { type: 'NetworkUnavailable', status: 'False', reason: 'NodeplaneIsUp', message: 'up' };

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-node-announcer-'));
let server: FakeApiServer;
let client: ApiClient;
let clock: FakeClock;
let announcer: NodeAnnouncer;
let events: AnnouncerEvent[];

beforeEach(async () => {
  server = new FakeApiServer();
  await server.start();
  server.writeKubeconfig(join(folder, 'kubeconfig'));
  client = await createApiClient({ kubeconfig: join(folder, 'kubeconfig'), userAgent: 'test' });
  clock = new FakeClock();
  events = [];
  announcer = announcerOf(client);
  apply(FOREIGN);
});

afterEach(async () => {
  await announcer.stop();
  client.close();
  await server.stop();
});

afterAll(() => rmSync(folder, { recursive: true }));

function announcerOf(of: ApiClient | undefined): NodeAnnouncer {
  const observe = (event: AnnouncerEvent) => void events.push(event);
  return new NodeAnnouncer({ client: of, nodeName: 'node-1', clock, random: () => 0, observe });
}

function apply(annotations: Readonly<Record<string, string>>, uid = 'first'): void {
  const node = apiNode('node-1');
  server.apply({ ...node, metadata: { ...node.metadata, annotations, uid } });
}

const node = (): ApiObject => server.objects('Node')[0]!;
const annotations = () => node().metadata.annotations;
const patches = () => server.count('patch', 'nodes');

/** What the watch tells of the Node. */
function seen(object: ApiObject = node()): void {
  const { object: decoded } = decodeObject(KINDS.Node, object);
  announcer.nodeChanged(decoded!);
}

/** Lets `ms` pass, then waits for `count` events. */
async function until(count: number, ms: number): Promise<void> {
  await clock.advance(ms);
  await vi.waitFor(() => expect(events).toHaveLength(count), { timeout: 20_000, interval: 5 });
}

/** Nothing is asked of the server for so long, once whatever was under way has come. */
async function isQuietFor(ms: number): Promise<void> {
  const before = server.requests.length;
  await clock.advance(ms);
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(server.requests).toHaveLength(before);
}

describe('NodeAnnouncer', () => {
  it('brings what several owners want into the Node with one request, and leaves the rest as it is', async () => {
    seen();
    announcer.want('IPv4', { [publicIp]: '192.0.2.1', [backendType]: 'vxlan' });
    announcer.want('IPv6', { [publicIpv6]: 'fd00::1' });
    expect(announcer.unwritten).toBe(3);
    await until(1, 100);
    expect(annotations()).toEqual({
      ...FOREIGN,
      [publicIp]: '192.0.2.1',
      [backendType]: 'vxlan',
      [publicIpv6]: 'fd00::1',
    });
    expect(server.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'PATCH /api/v1/nodes/node-1/status?fieldManager=nodeplane',
    ]);
    expect(node().spec).toEqual(apiNode('node-1').spec);
    expect(announcer.unwritten).toBe(0);
  });

  it('writes nothing where all is as wanted, and before there is a Node', async () => {
    apply({ ...FOREIGN, [publicIp]: '192.0.2.1' });
    announcer.want('routes', { [publicIp]: '192.0.2.1', [publicIpv6]: undefined });
    await isQuietFor(3_600_000);
    seen();
    await isQuietFor(3_600_000);
  });

  it('sets a condition that the Node has, in the same request, and leaves those of others', async () => {
    const unavailable = { type: 'NetworkUnavailable', status: 'True', reason: 'NoRouteCreated' };
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady' };
    const { metadata, ...rest } = node();
    server.apply({ ...rest, metadata, status: { conditions: [ready, unavailable] } });
    seen();
    announcer.want('routes', { [publicIp]: '192.0.2.1' });
    announcer.wantCondition(NETWORK_IS_UP);
    expect(announcer.unwritten).toBe(2);
    await until(1, 100);
    const time = '1970-01-01T00:16:40Z';
    expect(node().status).toEqual({
      conditions: [ready, { ...NETWORK_IS_UP, lastHeartbeatTime: time, lastTransitionTime: time }],
    });
    expect(announcer.unwritten).toBe(0);
    seen();
    announcer.wantCondition(NETWORK_IS_UP);
    await isQuietFor(3_600_000);
    expect(patches()).toBe(1);
  });

  it('adds no condition to a Node that does not have it', async () => {
    seen();
    announcer.wantCondition(NETWORK_IS_UP);
    await isQuietFor(3_600_000);
  });

  it('takes away what is wanted to be away, and nothing that is no longer named', async () => {
    apply({ ...FOREIGN, [publicIp]: '192.0.2.1', [publicIpv6]: 'fd00::1' });
    seen();
    announcer.want('routes', { [publicIp]: undefined });
    await until(1, 100);
    announcer.want('routes', {});
    await isQuietFor(3_600_000);
    expect(annotations()).toEqual({ ...FOREIGN, [publicIpv6]: 'fd00::1' });
  });

  it('writes again what somebody takes away: at once, then once a minute', async () => {
    seen();
    announcer.want('routes', { [publicIp]: '192.0.2.1' });
    await until(1, 100);
    await clock.advance(60_000);
    apply(FOREIGN);
    seen();
    await until(2, 100);
    apply(FOREIGN);
    seen();
    await isQuietFor(59_000);
    await until(3, 2000);
    expect(annotations()).toEqual({ ...FOREIGN, [publicIp]: '192.0.2.1' });
  });

  it('writes what an owner wants anew a second after the last write, and a new Node at once', async () => {
    seen();
    announcer.want('routes', { [publicIp]: '192.0.2.1' });
    await until(1, 100);
    announcer.want('routes', { [publicIp]: '192.0.2.2' });
    await isQuietFor(900);
    await until(2, 200);
    server.delete('Node', 'node-1');
    announcer.nodeRemoved('node-1');
    await isQuietFor(2000);
    apply({}, 'second');
    seen();
    await until(3, 100);
    expect(annotations()).toEqual({ [publicIp]: '192.0.2.2' });
  });

  it('does not take an older state that the watch tells afterwards for somebody else', async () => {
    const before = node();
    seen();
    announcer.want('routes', { [publicIp]: '192.0.2.1' });
    await until(1, 100);
    seen(before);
    await clock.advance(1000);
    seen();
    await isQuietFor(3_600_000);
    expect(patches()).toBe(1);
  });

  it('names the missing right once, and writes within two minutes of getting it', async () => {
    server.misbehave.rules = [{ apiGroups: [''], resources: ['nodes'], verbs: ['get', 'patch'] }];
    seen();
    announcer.want('routes', { [publicIp]: '192.0.2.1' });
    await until(1, 100);
    await isQuietFor(59_000);
    await until(2, 60_000);
    expect(events).toMatchObject([
      { kind: 'failed', isRepeated: false },
      { kind: 'failed', isRepeated: true },
    ]);
    expect((events[0] as { error: Error }).error.message).toMatch(
      /^Cannot patch Node "node-1" .* 403: .*; this needs the RBAC verb "patch" on resource "nodes\/status" of API group ""$/,
    );
    server.misbehave.rules = undefined;
    await until(3, 90_000);
    expect(events[2]).toMatchObject({ kind: 'written' });
  });

  it('tries again when the server is away, ever more seldom, and as the server asks', async () => {
    seen();
    server.misbehave.answers.push({ status: 503 }, { status: 503 }, { status: 429, retryAfterSeconds: 7 });
    announcer.want('routes', { [publicIp]: '192.0.2.1' });
    await until(1, 100);
    await until(2, 250);
    await until(3, 500);
    await isQuietFor(6900);
    await until(4, 200);
    expect(events.map((event) => (event.kind === 'failed' ? event.retryInMs : event.kind))).toEqual([
      250,
      500,
      7000,
      'written',
    ]);
  });

  it('sees that a write was done whose answer was lost', async () => {
    seen();
    server.misbehave.lostAnswers = 1;
    announcer.want('routes', { [publicIp]: '192.0.2.1' });
    await until(1, 100);
    seen();
    await isQuietFor(3_600_000);
    expect(events).toMatchObject([{ kind: 'failed' }]);
    expect(annotations()).toEqual({ ...FOREIGN, [publicIp]: '192.0.2.1' });
  });

  it('ends while a request gets no answer', async () => {
    seen();
    server.misbehave.stallAnswers = true;
    announcer.want('routes', { [publicIp]: '192.0.2.1' });
    await clock.advance(100);
    await vi.waitFor(() => expect(server.stalled).toBe(1), { timeout: 20_000 });
    await announcer.stop();
    expect(events).toEqual([]);
  });

  it('says once that there is no server to write to', async () => {
    announcer = announcerOf(undefined);
    seen();
    announcer.want('IPv4', { [publicIp]: '192.0.2.1' });
    announcer.want('IPv6', { [publicIpv6]: 'fd00::1' });
    await isQuietFor(3_600_000);
    expect(events).toEqual([{ kind: 'noServer' }]);
  });

  it('refuses an annotation that is not read: it would seem to be missing for ever', () => {
    expect(() => announcer.want('routes', { 'example.com/x': 'y' })).toThrow(
      'The annotation example.com/x is never read',
    );
  });
});
