import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { apiService, apiSlice } from '../../../test/fakes/api-server/index.ts';
import { ApiSourceFixture, eventually } from '../../../test/fakes/api-source-fixture.ts';

let t: ApiSourceFixture;

afterEach(() => t.stop());

describe.each(['both', 'json'] as const)('watches (the server speaks %s)', (speaks) => {
  beforeEach(async () => {
    t = await ApiSourceFixture.create(speaks);
    t.applyWeb();
    await t.start();
    await t.synced();
    await eventually(() => expect(t.server.watches()).toHaveLength(4));
    t.recorder.events.length = 0;
    t.observed.length = 0;
  });

  const services = () => t.server.watches('services')[0]!;
  const failure = () => eventually(() => expect(t.failures()).not.toEqual([]));

  it('are asked for at random lengths, with bookmarks', () => {
    const { searchParams } = new URL(
      t.server.requests.find(({ resource }) => resource === 'services')!.url,
      t.server.url,
    );
    expect(Object.fromEntries(searchParams)).toEqual({
      watch: 'true',
      labelSelector: '!service.kubernetes.io/service-proxy-name',
      fieldSelector: 'spec.clusterIP!=None',
      allowWatchBookmarks: 'true',
      timeoutSeconds: '300',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
    });
  });

  it.each([
    ['a reset in mid-line', () => services().reset(true)],
    ['an overloaded server', () => services().error({ code: 429, message: 'busy' })],
  ])('go on from the last version after %s', async (_, disturb) => {
    t.server.apply(apiService('demo/second'));
    await t.has('Service demo/second');
    const version = t.server.history.version;
    disturb();
    await failure();
    t.server.delete('Service', 'demo/second');
    t.server.apply(apiService('demo/third'));
    await t.has('Service demo/third');
    expect(t.server.requests.at(-1)!.url).toContain(`resourceVersion=${version}`);
    expect(t.recorder.log()).toEqual([
      'added Service demo/second',
      'deleted Service demo/second',
      'added Service demo/third',
    ]);
    expect(t.lists()).toEqual([]);
  });

  it('are asked for ever more seldom where each breaks behind its first event', async () => {
    let name = 0;
    const breakAgain = async () => {
      const watch = services();
      t.server.apply(apiService(`demo/again-${++name}`));
      await t.has(`Service demo/again-${name}`);
      watch.reset();
      await eventually(() => expect(t.failures()).toHaveLength(name));
    };
    for (let times = 0; times < 3; times++) {
      await eventually(() => expect(services()).toBeDefined());
      await breakAgain();
    }
    const waits = t.failures().map(({ retryInMs }) => retryInMs);
    expect(waits.at(-1)).toBeGreaterThan(1.5 * waits[0]!);
  });

  it('go on from the version of a bookmark', async () => {
    t.server.apply(apiSlice('demo/other', []));
    const version = t.server.history.version;
    services().bookmark();
    services().reset();
    await failure();
    await eventually(() => expect(t.server.requests.at(-1)!.url).toContain(`resourceVersion=${version}`));
    expect(t.recorder.present).toEqual([]);
  });

  it.each(['header', 'event'] as const)(
    'are replaced by a list after 410 (%s), without losing what exists',
    async (how) => {
      t.server.misbehave.refuseWatchVersions = how;
      await t.server.stop();
      t.server.apply(apiService('demo/second'));
      t.server.delete('EndpointSlice', 'demo/web-a');
      await t.server.start();
      await t.has('Service demo/second');
      await eventually(() => expect(t.recorder.keys()).not.toContain('EndpointSlice demo/web-a'));
      expect([...t.recorder.log()].sort()).toEqual(['added Service demo/second', 'deleted EndpointSlice demo/web-a']);
    },
  );

  it.each([
    ['garbage', () => services().garbage()],
    ['a page of something in between', () => services().raw('<html>502</html>\n'.repeat(3))],
    ['an unknown event', () => services().event('RENAMED', apiService('demo/renamed'))],
    ['a version from before', () => services().bookmark({}, 1)],
    ['any other error', () => services().error({ code: 400, message: 'no' })],
  ])('are replaced by a list after %s', async (_, disturb) => {
    disturb();
    t.server.apply(apiService('demo/second'));
    await t.has('Service demo/second');
    expect(t.lists()).toEqual([{ resource: 'services', streamed: true }]);
    expect(t.recorder.log()).toEqual(['added Service demo/second']);
  });

  it.each([
    ['a bookmark tells it', () => services().bookmark()],
    ['a list does', () => services().error({ code: 410, message: 'too old' })],
  ])('take in what a backup that was put back has under known versions: %s', async (_, tell) => {
    const ports = (port: number) => ({ spec: { ports: [{ port }] } });
    const putBack = t.server.history.backup();
    t.server.apply(apiService('demo/web', ports(81)));
    for (let port = 90; port < 95; port++) t.server.apply(apiService('demo/other', ports(port)));
    const isTold = (name: string, port: number) =>
      eventually(() =>
        expect(
          t.recorder.events
            .map(({ object }) => object)
            .filter(({ metadata }) => metadata.name === name)
            .at(-1),
        ).toMatchObject(ports(port)),
      );
    await isTold('other', 94);
    putBack();
    t.server.apply(apiService('demo/web', ports(82)));
    t.recorder.events.length = 0;
    tell();
    await isTold('web', 82);
    expect(t.recorder.keys()).not.toContain('Service demo/other');
  });

  it('go on after what takes an object in has failed', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    const take = t.recorder.event.bind(t.recorder);
    t.recorder.event = (event) => {
      if (event.object.metadata.name === 'bad') throw new TypeError('no such field');
      take(event);
    };
    t.server.apply(apiService('demo/bad'));
    await eventually(() =>
      expect(warned.mock.calls.flat().map(String)).toContain('BackgroundFailure: API reader: no such field'),
    );
    t.server.apply(apiService('demo/good'));
    await t.has('Service demo/good');
  });

  it('leave an event without an object alone', async () => {
    services().raw(
      speaks === 'json'
        ? '{"type":"DELETED"}\n{"type":"ADDED","object":null}\n'
        : '\0\0\0\x09\x0a\x07DELETED\0\0\0\x07\x0a\x05ADDED',
    );
    t.server.apply(apiService('demo/second'));
    await t.has('Service demo/second');
    expect(t.lists()).toEqual([]);
    await eventually(() => {
      expect(t.recorder.present).toEqual([{ where: 'services', message: 'Objects without a name were left out: 1' }]);
    });
  });

  it('read an object of megabytes', async () => {
    t.server.apply(apiService('demo/large', { annotations: { large: 'x'.repeat(3_000_000) } }));
    await t.has('Service demo/large');
    expect(t.lists()).toEqual([]);
  });

  it('take their activity from every word of the server', async () => {
    const before = t.source.lastActivity();
    expect([...before.keys()].sort()).toEqual(['endpointslices', 'nodes', 'servicecidrs', 'services']);
    await eventually(() => expect(performance.now()).toBeGreaterThan(before.get('services')!));
    services().bookmark();
    await eventually(() => expect(t.source.lastActivity().get('services')).toBeGreaterThan(before.get('services')!));
  });
});
