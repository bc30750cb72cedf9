import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { type ApiClient, type ApiRequest, ApiStatusError } from './client/api-client.ts';
import { EventRecorder } from './event-recorder.ts';

const NODE = { kind: 'Node', name: 'node-1', namespace: '' } as const;
const STARTING = { type: 'Normal', reason: 'Starting', action: 'StartKubeProxy', note: '' } as const;

let clock: FakeClock;
let sent: ApiRequest[];
/** What the server answers, in order; then it accepts. */
let refusals: Error[];
let dropped: string[];
let recorder: EventRecorder;
let apiClient: ApiClient;

beforeEach(() => {
  clock = new FakeClock(Date.UTC(2025, 0, 1));
  sent = [];
  refusals = [];
  dropped = [];
  apiClient = {
    server: new URL('https://192.0.2.1:6443'),
    async send(request) {
      sent.push(request);
      const refusal = refusals.shift();
      if (refusal) throw refusal;
      return { status: 201, body: (async function* () {})(), setQuietLimit: () => {} };
    },
    close: () => {},
  };
  const observe = (o: { kind: string; cause?: string }) => dropped.push(`${o.kind}: ${o.cause}`);
  recorder = new EventRecorder({
    client: apiClient,
    controller: 'kube-proxy',
    nodeName: 'node-1',
    clock,
    random: () => 0,
    observe,
  });
});

const failure = (status: number) => new ApiStatusError('POST', status, 'no');

describe('EventRecorder', () => {
  it('writes events as kube-proxy does', async () => {
    recorder.record(NODE, STARTING);
    await clock.advance(0);
    expect(sent).toMatchObject([
      {
        method: 'POST',
        path: '/apis/events.k8s.io/v1/namespaces/default/events',
        body: {
          apiVersion: 'events.k8s.io/v1',
          kind: 'Event',
          metadata: { name: expect.stringMatching(/^node-1\.[0-9a-f]{16}$/), namespace: 'default' },
          eventTime: '2025-01-01T00:00:00.000000Z',
          type: 'Normal',
          reason: 'Starting',
          action: 'StartKubeProxy',
          note: '',
          regarding: { apiVersion: 'v1', kind: 'Node', name: 'node-1' },
          reportingController: 'kube-proxy',
          reportingInstance: 'kube-proxy-node-1',
        },
      },
    ]);
  });

  it('is no leak of memory to the runtime when many wait for the server', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    refusals = Array.from({ length: 20 }, () => failure(503));
    for (let i = 0; i < 20; i++) recorder.record(NODE, { ...STARTING, note: String(i) });
    await clock.advance(0);
    expect(sent).toHaveLength(20);
    expect(warned.mock.calls).toEqual([]);
    await clock.advance(10_000);
    expect(sent).toHaveLength(40);
  });

  it('gives one name to what this node, or each node, tells again, also after a restart', async () => {
    const subject = { kind: 'Service', name: 'web', namespace: 'demo' } as const;
    const event = { ...STARTING, note: 'a part is not served' };
    const namesOf = async (nodeName: string, one: Parameters<EventRecorder['record']>[1]) => {
      const again = new EventRecorder({ client: apiClient, controller: 'kube-proxy', nodeName, clock });
      again.record(subject, one);
      await clock.advance(0);
      return (sent.at(-1)!.body as { metadata: { name: string } }).metadata.name;
    };
    const names = async (one: Parameters<EventRecorder['record']>[1]) => [
      await namesOf('node-1', one),
      await namesOf('node-1', one),
      await namesOf('node-2', one),
    ];
    const each = await names(event);
    expect(new Set(each).size).toBe(3);
    const [first, restarted, other] = await names({ ...event, once: 'node' });
    expect(first).toMatch(/^web\.[0-9a-f]{16}$/);
    expect(restarted).toBe(first);
    expect(other).not.toBe(first);
    expect(new Set(await names({ ...event, once: 'cluster' })).size).toBe(1);
    expect(await namesOf('node-1', { ...event, once: 'cluster', note: 'another' })).not.toBe(
      await namesOf('node-1', { ...event, once: 'cluster' }),
    );
    const worded = (note: string) => ({ ...event, once: 'cluster', cause: 'the same', note }) as const;
    expect(await namesOf('node-1', worded('one'))).toBe(await namesOf('node-2', worded('two')));
  });

  it('takes one that the API server has already for written', async () => {
    refusals = [failure(409)];
    recorder.record(NODE, { ...STARTING, once: 'node' });
    await clock.advance(60_000);
    expect([sent.length, dropped]).toEqual([1, []]);
  });

  it('writes events about a Service into its namespace, with a note of at most 1024 bytes', async () => {
    recorder.record({ kind: 'Service', name: 'web', namespace: 'demo' }, { ...STARTING, note: 'é'.repeat(600) });
    await clock.advance(0);
    const { path, body } = sent[0]!;
    expect(path).toContain('/namespaces/demo/');
    const { note } = body as { note: string };
    expect(note).toMatch(/^é+…$/);
    expect(Buffer.byteLength(note)).toBeGreaterThan(1_020);
    expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1_024);
  });

  it('keeps to the lengths that the API allows, for a node with the longest name', async () => {
    // The event's name is cut behind the dash.
    const name = `${'n'.repeat(235)}-${'n'.repeat(17)}`;
    const ofLongName = new EventRecorder({ client: apiClient, controller: 'kube-proxy', nodeName: name, clock });
    ofLongName.record({ ...NODE, name }, STARTING);
    await clock.advance(0);
    const body = sent[0]!.body as { metadata: { name: string }; regarding: object; reportingInstance: string };
    expect(body.metadata.name).toMatch(/^n{235}\.[0-9a-f]{16}$/);
    expect(body.regarding).toMatchObject({ name });
    expect(body.reportingInstance).toBe(`kube-proxy-${'n'.repeat(117)}`);
  });

  it('writes the same again only after six minutes', async () => {
    recorder.record(NODE, STARTING);
    await clock.advance(359_000);
    recorder.record(NODE, STARTING);
    recorder.record(NODE, { ...STARTING, reason: 'Other' });
    await clock.advance(1_000);
    recorder.record(NODE, STARTING);
    await clock.advance(0);
    expect(sent).toHaveLength(3);
    expect(dropped).toEqual(['eventDropped: the same was recorded a short while ago']);
  });

  it('writes 25 at once, then one in ten seconds', async () => {
    for (let i = 0; i < 30; i++) recorder.record(NODE, { ...STARTING, note: `${i}` });
    await clock.advance(20_000);
    for (let i = 30; i < 40; i++) recorder.record(NODE, { ...STARTING, note: `${i}` });
    await clock.advance(0);
    expect(sent).toHaveLength(27);
    expect(dropped).toHaveLength(13);
  });

  it('tries again after trouble, but not after a refusal, and gives up in the end', async () => {
    refusals = [failure(500), failure(503)];
    recorder.record(NODE, STARTING);
    await clock.advance(750);
    expect(sent).toHaveLength(3);
    expect(dropped).toEqual([]);

    refusals = [failure(403)];
    recorder.record(NODE, { ...STARTING, reason: 'Forbidden' });
    await clock.advance(60_000);
    expect(sent).toHaveLength(4);
    expect(dropped).toHaveLength(1);

    refusals = Array.from({ length: 99 }, () => failure(500));
    recorder.record(NODE, { ...STARTING, reason: 'Away' });
    for (let seconds = 0; seconds < 120; seconds++) await clock.advance(1000);
    expect(dropped).toHaveLength(1);
    await clock.advance(1000);
    expect(dropped).toHaveLength(2);
    const tried = sent.length;
    await clock.advance(600_000);
    expect(sent).toHaveLength(tried);
  });

  it('stops trying when stopped', async () => {
    refusals = [failure(500)];
    recorder.record(NODE, STARTING);
    await clock.advance(0);
    recorder.stop();
    await clock.advance(60_000);
    expect(sent).toHaveLength(1);
    expect(dropped).toEqual([]);
  });

  it('waits for what is on its way before the end, but not for ever', async () => {
    recorder.record(NODE, STARTING);
    await recorder.drain(2000);
    expect(sent).toHaveLength(1);
    refusals = [failure(500), failure(500), failure(500)];
    recorder.record(NODE, { ...STARTING, reason: 'Away' });
    let ended = false;
    const draining = recorder.drain(10).then(() => {
      ended = true;
    });
    await clock.advance(9);
    expect(ended).toBe(false);
    await clock.advance(1);
    await draining;
  });

  it.each([-86_400_000, 86_400_000])('keeps its limits when the calendar is moved by %i ms', async (byMs) => {
    const burst = (name: string) => {
      for (let i = 0; i < 5_000; i++) recorder.record({ ...NODE, name: `${name}-${i}` }, STARTING);
    };
    burst('before');
    clock.setCalendar(byMs);
    burst('after');
    recorder.record({ ...NODE, name: 'before-0' }, STARTING);
    await clock.advance(0);
    expect(sent).toHaveLength(25);
    expect(dropped.at(-1)).toMatch(/the same/);
    await clock.advance(10_000);
    burst('later');
    await clock.advance(0);
    expect(sent).toHaveLength(26);
  });
});
