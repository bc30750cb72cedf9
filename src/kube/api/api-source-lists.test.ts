import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { apiService } from '../../../test/fakes/api-server/index.ts';
import { ApiSourceFixture, EVERYTHING, eventually } from '../../../test/fakes/api-source-fixture.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';

let t: ApiSourceFixture;

beforeEach(async () => {
  t = await ApiSourceFixture.create();
});

afterEach(() => t.stop());

describe('lists', () => {
  const names = Array.from({ length: 1_203 }, (_, index) => `demo/web-${index}`);

  it('come in the watch itself from servers that can do so', async () => {
    t.applyWeb();
    await t.start();
    await t.synced();
    expect(t.lists()).toHaveLength(4);
    expect(t.lists()).toContainEqual({ resource: 'services', streamed: true });
    expect(t.server.requests.filter(({ verb }) => verb !== 'watch')).toEqual([]);
  });

  it('come page by page from others', async () => {
    t.server.misbehave.streamingLists = false;
    t.server.apply(...names.map((name) => apiService(name)));
    await t.start();
    await t.synced();
    expect(t.server.count('list', 'services')).toBe(3);
    expect(t.server.count('list', 'endpointslices')).toBe(1);
    expect([...t.recorder.objects.values()].filter(({ kind }) => kind === 'Service')).toHaveLength(names.length);
    expect(t.recorder.present).toEqual([]);
    t.server.apply(apiService('demo/after'));
    await t.has('Service demo/after');
  });

  it('by pages tell what is gone, too', async () => {
    t.server.misbehave.streamingLists = false;
    t.applyWeb();
    await t.start();
    await t.synced();
    // Only a list can tell of the deletion.
    t.server.misbehave.refuseWatchVersions = 'header';
    t.server.misbehave.stallWatches = true;
    t.server.delete('EndpointSlice', 'demo/web-a');
    for (const watch of t.server.watches()) watch.reset();
    await eventually(() => expect(t.recorder.keys()).not.toContain('EndpointSlice demo/web-a'));
  });

  it('start anew, in one page, when the next page is no longer there', async () => {
    t.server.misbehave.streamingLists = false;
    t.server.misbehave.expireContinueTokens = true;
    t.server.apply(...names.map((name) => apiService(name)));
    await t.start();
    await t.synced();
    expect([...t.recorder.objects.values()].filter(({ kind }) => kind === 'Service')).toHaveLength(names.length);
    expect(t.recorder.violations).toEqual([]);
  });

  it('are read slowly from a slow server', async () => {
    t.server.misbehave.streamingLists = false;
    t.server.misbehave.slow = { bytes: 97, pauseMs: 1 };
    t.applyWeb();
    await t.start();
    await t.synced();
    expect(t.recorder.keys()).toEqual(EVERYTHING);
  });

  it('are read the other way when a streaming list does not end', async () => {
    const clock = new FakeClock();
    for (const name of ['services', 'endpointslices', 'nodes', 'servicecidrs'])
      t.server.misbehave.endlessLists.add(name);
    t.applyWeb();
    await t.start({ clock });
    await t.has(...EVERYTHING);
    expect(t.recorder.isSynced).toBe(false);
    for (const watch of t.server.watches()) watch.reset(true);
    await eventually(() => expect(t.failures()).toHaveLength(4));
    await clock.advance(1_000);
    await t.synced();
    expect(t.lists().every(({ streamed }) => !streamed)).toBe(true);
    expect(t.recorder.violations).toEqual([]);
  });
});
