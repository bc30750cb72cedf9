import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { apiService } from '../../../test/fakes/api-server/index.ts';
import { ApiSourceFixture, EVERYTHING, eventually } from '../../../test/fakes/api-source-fixture.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { countUnusable } from '../source.ts';

let t: ApiSourceFixture;

beforeEach(async () => {
  t = await ApiSourceFixture.create();
});

afterEach(() => t.stop());

describe('trouble', () => {
  it('keeps everything while the server is away, says so, and catches up when it is back', async () => {
    const clock = new FakeClock();
    t.applyWeb();
    await t.start({ clock });
    await t.synced();
    await t.server.stop();
    await eventually(async () => {
      await clock.advance(1_000);
      expect(t.recorder.present).toHaveLength(4);
    });
    expect(t.recorder.present[0]!.message).toContain('the last known state stays in force: GET https://127.0.0.1:');
    // That is no object's fault.
    expect(countUnusable(t.recorder.present)).toBe(0);
    expect(t.source.silentSince()).toEqual(t.source.lastActivity());
    expect(t.recorder.keys()).toEqual(EVERYTHING);

    t.recorder.events.length = 0;
    t.server.compact();
    t.server.delete('Service', 'demo/web');
    t.server.apply(apiService('demo/new'));
    await t.server.start();
    await eventually(async () => {
      await clock.advance(1_000);
      expect([...t.recorder.log()].sort()).toEqual(['added Service demo/new', 'deleted Service demo/web']);
      expect(t.recorder.present).toEqual([]);
    });
  });

  it('counts the silence of a server that never answered from the start', async () => {
    const clock = new FakeClock();
    await t.server.stop();
    const began = clock.now();
    await t.start({ clock });
    await eventually(async () => {
      await clock.advance(1_000);
      expect(t.recorder.present).toHaveLength(4);
    });
    expect(t.source.lastActivity().size).toBe(0);
    expect([...t.source.silentSince()].sort()).toEqual(
      ['endpointslices', 'nodes', 'servicecidrs', 'services'].map((resource) => [resource, began]),
    );
  });

  it('cuts a watch that is silent for longer than it was asked for', async () => {
    const clock = new FakeClock();
    t.applyWeb();
    // The client measures the silence.
    await t.connect(clock);
    await t.start({ clock });
    await t.synced();
    // The first watch began as a streaming list, the second one does not.
    for (const name of ['demo/second', 'demo/third']) {
      t.observed.length = 0;
      t.server.misbehave.stallWatches = true;
      t.server.apply(apiService(name));
      await clock.advance(329_000);
      expect(t.failures()).toEqual([]);
      await clock.advance(1_000);
      await eventually(() => expect(t.failures()).toHaveLength(4));
      for (const { error } of t.failures()) expect(error.message).toContain('no byte for 330 s');
      t.server.misbehave.stallWatches = false;
      await clock.advance(250);
      await t.has(`Service ${name}`);
      await eventually(() => expect(t.observed.filter(({ kind }) => kind === 'watchStarted')).toHaveLength(4));
      expect(t.lists()).toEqual([]);
      expect(t.recorder.present).toEqual([]);
    }
  });

  it('forgets former failures once a watch has worked for a second', async () => {
    const clock = new FakeClock();
    await t.start({ clock });
    await t.synced();
    for (let round = 0; round < 3; round++) {
      t.observed.length = 0;
      await clock.advance(2_000);
      // Replaced by a streaming list at once.
      t.server.watches('services').at(-1)!.error({ code: 410, message: 'too old' });
      await eventually(() => expect(t.lists()).toHaveLength(1));
      expect(t.failures()).toMatchObject([{ retryInMs: 0 }]);
      expect(t.observed).toContainEqual({ kind: 'watchStands', resource: 'services' });
    }
  });

  it('cuts a watch that has no end because a byte comes now and then', async () => {
    await t.stop();
    t = await ApiSourceFixture.create('json');
    const clock = new FakeClock();
    await t.connect(clock);
    await t.start({ clock });
    await t.synced();
    await eventually(() => expect(t.server.watches()).toHaveLength(4));
    const services = t.server.watches('services')[0]!;
    for (let seconds = 0; seconds < 360; seconds += 10) {
      services.raw(' ');
      await clock.advance(10_000);
    }
    await eventually(() => expect(t.failures().map(({ resource }) => resource)).toContain('services'));
    const { error } = t.failures().find(({ resource }) => resource === 'services')!;
    expect(error.message).toContain('not done within 360 s');
  });

  it('says that something in between answers in place of the server, and keeps everything', async () => {
    const clock = new FakeClock();
    t.applyWeb();
    await t.start({ clock });
    await t.synced();
    const page = { body: '<html>\nLog in\n</html>\n', type: 'text/html' };
    for (let n = 0; n < 50; n++) t.server.misbehave.answers.push({ ...page, status: 200 }, { ...page, status: 404 });
    for (const watch of t.server.watches()) watch.reset();
    await eventually(async () => {
      await clock.advance(1_000);
      expect(t.recorder.present).toHaveLength(4);
    });
    expect(t.recorder.present[0]!.message).toMatch(
      /\/api\/v1\/nodes: the answer (200|404) is text\/html, which no API server sends: .*; look at the address and proxy-url in the kubeconfig/,
    );
    expect(t.recorder.keys()).toEqual(EVERYTHING);
    // Nothing was heard that would have to be listed anew.
    expect(t.failures().filter(({ relist }) => relist)).toEqual([]);
    t.server.misbehave.answers.length = 0;
    t.server.apply(apiService('demo/new'));
    await eventually(async () => {
      await clock.advance(1_000);
      expect(t.recorder.keys()).toContain('Service demo/new');
    });
  });

  it('waits as long as the server asks for', async () => {
    const clock = new FakeClock();
    t.server.misbehave.answers.push(...Array.from({ length: 4 }, () => ({ status: 429, retryAfterSeconds: 7 })));
    await t.start({ clock });
    await eventually(() => expect(t.failures()).toHaveLength(4));
    expect(t.failures()[0]).toMatchObject({ retryInMs: 7_000 });
    await clock.advance(6_900);
    expect(t.server.requests).toHaveLength(4);
    await clock.advance(100);
    await t.synced();
  });

  it('asks ever more rarely while versions are refused at once', async () => {
    const clock = new FakeClock();
    await t.start({ clock });
    await t.synced();
    t.server.misbehave.refuseWatchVersions = 'header';
    t.server.misbehave.streamingLists = false;
    t.server.watches('services')[0]!.reset();
    const waits = () =>
      t
        .failures()
        .filter((o) => o.resource === 'services')
        .map((o) => o.retryInMs);
    await eventually(async () => {
      await clock.advance(100);
      expect(waits().length).toBeGreaterThan(6);
    });
    const grown = waits().filter((ms) => ms > 0);
    expect(grown).toEqual([...grown].sort((a, b) => a - b));
    expect(grown.at(-1)).toBeGreaterThan(1_000);
  });

  it('tells nothing after stop, and leaves no connection', async () => {
    await t.start();
    await t.synced();
    await t.source.stop();
    const { length } = t.recorder.events;
    t.server.apply(apiService('demo/late'));
    await eventually(() => expect(t.server.watches()).toEqual([]));
    expect(t.recorder.events).toHaveLength(length);
  });
});
