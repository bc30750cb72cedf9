import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  apiEndpoints,
  apiNode,
  apiService,
  apiServiceCidr,
  apiSlice,
  FakeApiServer,
  ObjectRecorder,
} from '../../../test/fakes/api-server/index.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { proxyResources } from '../../proxy/index.ts';
import { ApiSource, type ApiSourceOptions } from './api-source.ts';
import type { ApiClient } from './client/api-client.ts';
import { createApiClient } from './client/http-client.ts';
import type { ApiObservation } from './client/observation.ts';

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-api-source-'));
let server: FakeApiServer;
let client: ApiClient;
let recorder: ObjectRecorder;
let source: ApiSource | undefined;
let observed: ApiObservation[];

beforeEach(async () => {
  server = new FakeApiServer();
  await server.start();
  server.apply(apiNode('node-1'), apiServiceCidr('kubernetes', ['10.96.0.0/12']));
  server.writeKubeconfig(join(folder, 'kubeconfig'));
  client = await createApiClient({ kubeconfig: join(folder, 'kubeconfig'), userAgent: 'test' });
  recorder = new ObjectRecorder();
  observed = [];
});

afterEach(async () => {
  await source?.stop();
  source = undefined;
  client.close();
  await server.stop();
});

afterAll(() => rmSync(folder, { recursive: true }));

async function start(options: Partial<ApiSourceOptions> = {}): Promise<void> {
  const observe = (observation: ApiObservation) => observed.push(observation);
  source = new ApiSource({ client, resources: proxyResources('node-1', ''), random: () => 0, observe, ...options });
  await source.start(recorder);
}

function eventually(check: () => void): Promise<void> {
  return vi.waitFor(check, { timeout: 5_000, interval: 5 });
}

const synced = () => eventually(() => expect(recorder.isSynced).toBe(true));
const has = (...keys: string[]) => eventually(() => expect(recorder.keys()).toEqual(expect.arrayContaining(keys)));
const lists = () =>
  observed.flatMap((o) => (o.kind === 'listed' ? [{ resource: o.resource, streamed: o.streamed }] : []));
const failures = () => observed.filter((o) => o.kind === 'failed');

const EVERYTHING = ['EndpointSlice demo/web-a', 'Node node-1', 'Service demo/web', 'ServiceCIDR kubernetes'];

function applyWeb(): void {
  server.apply(apiService('demo/web'), apiSlice('demo/web', ['10.244.0.5']));
}

describe('what is read', () => {
  it('tells every object in the shape of types.ts, without what we do not read', async () => {
    applyWeb();
    const annotations = {
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      'nodeplane.io/ipvs-scheduler': 'sh',
    };
    server.apply(apiService('demo/annotated', { annotations }));
    await start();
    await synced();

    expect(recorder.keys()).toEqual([...EVERYTHING, 'Service demo/annotated'].sort());
    expect(recorder.object('EndpointSlice demo/web-a')).toEqual({
      kind: 'EndpointSlice',
      metadata: { name: 'web-a', namespace: 'demo', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [
        {
          addresses: ['10.244.0.5'],
          conditions: { ready: true, serving: true, terminating: false },
          nodeName: 'node-0',
        },
      ],
      ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    });
    expect(recorder.object('Service demo/annotated').metadata).toEqual({
      name: 'annotated',
      namespace: 'demo',
      creationTimestamp: '2025-01-01T00:00:00Z',
      annotations: { 'nodeplane.io/ipvs-scheduler': 'sh' },
    });
    expect(recorder.violations).toEqual([]);
  });

  it('leaves selecting to the server: relabelling an object adds or deletes it', async () => {
    const ofOthers = { 'service.kubernetes.io/service-proxy-name': 'other' };
    server.apply(apiService('demo/web'), apiService('demo/theirs', { labels: ofOthers }));
    server.apply(apiService('demo/headless', { spec: { clusterIP: 'None' } }));
    server.apply(apiSlice('demo/headless', ['10.244.0.9'], { labels: { 'service.kubernetes.io/headless': '' } }));
    server.apply(apiNode('node-2'));
    await start();
    await synced();
    expect(recorder.keys()).toEqual(['Node node-1', 'Service demo/web', 'ServiceCIDR kubernetes']);

    recorder.events.length = 0;
    server.apply(apiService('demo/theirs'));
    await has('Service demo/theirs');
    server.apply(apiService('demo/theirs', { labels: ofOthers }));
    await eventually(() =>
      expect(recorder.log()).toEqual(['added Service demo/theirs', 'deleted Service demo/theirs']),
    );
  });

  it('reads only the Services of its own name when it has one', async () => {
    const label = 'service.kubernetes.io/service-proxy-name';
    server.apply(apiService('demo/web'), apiService('demo/ours', { labels: { [label]: 'ours' } }));
    server.apply(apiService('demo/theirs', { labels: { [label]: 'theirs' } }));
    await start({ resources: proxyResources('node-1', 'ours') });
    await synced();
    expect(recorder.keys().filter((key) => key.startsWith('Service '))).toEqual(['Service demo/ours']);
  });

  it('says which object cannot be used, keeps its last good state, and goes on with the others', async () => {
    applyWeb();
    server.apply(apiService('demo/bad', { spec: { ports: [{ port: 'http' }] } }));
    await start();
    await synced();
    const problem = (name: string) => ({
      where: 'services',
      object: `Service demo/${name}`,
      field: 'spec.ports[0].port',
      message: 'Expected a port number from 1 to 65535, found "http"',
    });
    await eventually(() => expect(recorder.present).toEqual([problem('bad')]));
    expect(recorder.keys()).toEqual(EVERYTHING);

    server.apply(apiService('demo/web', { spec: { ports: [{ port: 'http' }] } }));
    await eventually(() => expect(recorder.present).toEqual([problem('bad'), problem('web')]));
    expect(recorder.keys()).toEqual(EVERYTHING);

    server.delete('Service', 'demo/bad');
    server.apply(apiService('demo/web'));
    await eventually(() => expect(recorder.present).toEqual([]));
    expect(recorder.keys()).toEqual(EVERYTHING);
    expect(recorder.violations).toEqual([]);
  });

  it('does not mention updates of what we do not read', async () => {
    applyWeb();
    await start();
    await synced();
    recorder.events.length = 0;
    server.apply(apiService('demo/web', { spec: { selector: { app: 'other' } } }));
    server.apply(apiService('demo/last'));
    await has('Service demo/last');
    expect(recorder.log()).toEqual(['added Service demo/last']);
  });
});

describe('lists', () => {
  const names = Array.from({ length: 1_203 }, (_, index) => `demo/web-${index}`);

  it('come in the watch itself from servers that can do so', async () => {
    applyWeb();
    await start();
    await synced();
    expect(lists()).toHaveLength(4);
    expect(lists()).toContainEqual({ resource: 'services', streamed: true });
    expect(server.requests.filter(({ verb }) => verb !== 'watch')).toEqual([]);
  });

  it('come page by page from others', async () => {
    server.misbehave.streamingLists = false;
    server.apply(...names.map((name) => apiService(name)));
    await start();
    await synced();
    expect(server.count('list', 'services')).toBe(3);
    expect(server.count('list', 'endpointslices')).toBe(1);
    expect([...recorder.objects.values()].filter(({ kind }) => kind === 'Service')).toHaveLength(names.length);
    expect(recorder.present).toEqual([]);
    server.apply(apiService('demo/after'));
    await has('Service demo/after');
  });

  it('by pages tell what is gone, too', async () => {
    server.misbehave.streamingLists = false;
    applyWeb();
    await start();
    await synced();
    // Only a list can tell of the deletion.
    server.misbehave.refuseWatchVersions = 'header';
    server.misbehave.stallWatches = true;
    server.delete('EndpointSlice', 'demo/web-a');
    for (const watch of server.watches()) watch.reset();
    await eventually(() => expect(recorder.keys()).not.toContain('EndpointSlice demo/web-a'));
  });

  it('start anew, in one page, when the next page is no longer there', async () => {
    server.misbehave.streamingLists = false;
    server.misbehave.expireContinueTokens = true;
    server.apply(...names.map((name) => apiService(name)));
    await start();
    await synced();
    expect([...recorder.objects.values()].filter(({ kind }) => kind === 'Service')).toHaveLength(names.length);
    expect(recorder.violations).toEqual([]);
  });

  it('are read slowly from a slow server', async () => {
    server.misbehave.streamingLists = false;
    server.misbehave.slow = { bytes: 97, pauseMs: 1 };
    applyWeb();
    await start();
    await synced();
    expect(recorder.keys()).toEqual(EVERYTHING);
  });

  it('are read the other way when a streaming list does not end', async () => {
    const clock = new FakeClock();
    for (const name of ['services', 'endpointslices', 'nodes', 'servicecidrs']) server.misbehave.endlessLists.add(name);
    applyWeb();
    await start({ clock });
    await has(...EVERYTHING);
    expect(recorder.isSynced).toBe(false);
    for (const watch of server.watches()) watch.reset(true);
    await eventually(() => expect(failures()).toHaveLength(4));
    await clock.advance(1_000);
    await synced();
    expect(lists().every(({ streamed }) => !streamed)).toBe(true);
    expect(recorder.violations).toEqual([]);
  });
});

describe('synced', () => {
  it('waits for both Services and EndpointSlices, however long that takes', async () => {
    const clock = new FakeClock();
    const all = ['list', 'watch'];
    const others = {
      apiGroups: ['', 'networking.k8s.io'],
      resources: ['services', 'nodes', 'servicecidrs'],
      verbs: all,
    };
    server.misbehave.rules = [others];
    applyWeb();
    await start({ clock });
    await has('Service demo/web', 'Node node-1', 'ServiceCIDR kubernetes');
    await eventually(async () => {
      await clock.advance(10_000);
      expect(recorder.present).toEqual([
        { where: 'endpointslices', message: expect.stringMatching(/answered 403: .* resource "endpointslices"/) },
      ]);
    });
    await clock.advance(120_000);
    expect(recorder.isSynced).toBe(false);

    server.misbehave.rules = [others, { apiGroups: ['discovery.k8s.io'], resources: ['*'], verbs: all }];
    await eventually(async () => {
      await clock.advance(1_000);
      expect(recorder.isSynced).toBe(true);
    });
    await clock.advance(1_000);
    expect(recorder.present).toEqual([]);
    expect(recorder.keys()).toEqual(EVERYTHING);
  });

  it('waits 30 s for a Node with an address, and says so', async () => {
    const clock = new FakeClock();
    server.apply(apiNode('node-1', ''));
    applyWeb();
    await start({ clock });
    await has(...EVERYTHING);
    await eventually(() => expect(lists()).toHaveLength(4));
    await clock.advance(29_000);
    expect(recorder.isSynced).toBe(false);
    await clock.advance(1_100);
    expect(recorder.isSynced).toBe(true);
    expect(recorder.present).toMatchObject([{ where: 'nodes', object: 'Node node-1' }]);

    server.apply(apiNode('node-1'));
    await eventually(async () => {
      await clock.advance(100);
      expect(recorder.present).toEqual([]);
    });
  });

  it('waits for the ServiceCIDRs until they are there or cannot be read', async () => {
    const clock = new FakeClock();
    server.misbehave.endlessLists.add('servicecidrs');
    applyWeb();
    await start({ clock });
    await has(...EVERYTHING);
    await eventually(() => expect(lists()).toHaveLength(3));
    expect(recorder.isSynced).toBe(false);
    server.watches('servicecidrs')[0]!.reset();
    await synced();
    expect(lists()).toHaveLength(3);
  });

  it('comes at once when the Node gets its address', async () => {
    const clock = new FakeClock();
    server.delete('Node', 'node-1');
    await start({ clock });
    await eventually(() => expect(lists()).toHaveLength(4));
    expect(recorder.isSynced).toBe(false);
    server.apply(apiNode('node-1'));
    await synced();
  });

  it.each([
    ['the server does not know them', () => server.misbehave.missingGroups.add('networking.k8s.io')],
    [
      'we may not read them',
      () => {
        const verbs = ['list', 'watch'];
        server.misbehave.rules = [{ apiGroups: ['', 'discovery.k8s.io'], resources: ['*'], verbs }];
      },
    ],
  ])('does not wait for ServiceCIDRs when %s', async (_, arrange) => {
    const clock = new FakeClock();
    arrange();
    applyWeb();
    await start({ clock });
    await synced();
    expect(recorder.keys()).toEqual(EVERYTHING.slice(0, 3));
  });
});

describe('without discovery.k8s.io', () => {
  it('makes slices of Endpoints', async () => {
    server.misbehave.missingGroups.add('discovery.k8s.io');
    server.apply(
      apiService('demo/web'),
      apiEndpoints('demo/web', [{ addresses: [{ ip: '10.244.0.5' }], ports: [{ port: 8080 }] }]),
      apiEndpoints('demo/hidden', [{ addresses: [{ ip: '10.244.0.6' }] }], { 'service.kubernetes.io/headless': '' }),
    );
    await start();
    await synced();
    expect(recorder.keys().filter((key) => key.startsWith('EndpointSlice'))).toEqual(['EndpointSlice demo/web-ipv4']);
    expect(recorder.present).toEqual([]);

    server.apply(apiEndpoints('demo/web', [{ addresses: [{ ip: 'fd00::5' }], ports: [{ port: 8080 }] }]));
    await has('EndpointSlice demo/web-ipv6');
    expect(recorder.keys()).not.toContain('EndpointSlice demo/web-ipv4');
    server.delete('Endpoints', 'demo/web');
    await eventually(() =>
      expect(recorder.keys()).toEqual(['Node node-1', 'Service demo/web', 'ServiceCIDR kubernetes']),
    );
  });
});

describe('watches', () => {
  beforeEach(async () => {
    applyWeb();
    await start();
    await synced();
    await eventually(() => expect(server.watches()).toHaveLength(4));
    recorder.events.length = 0;
    observed.length = 0;
  });

  const services = () => server.watches('services')[0]!;
  const failure = () => eventually(() => expect(failures()).not.toEqual([]));

  it('are asked for at random lengths, with bookmarks', () => {
    const { searchParams } = new URL(server.requests.find(({ resource }) => resource === 'services')!.url, server.url);
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
    server.apply(apiService('demo/second'));
    await has('Service demo/second');
    const version = server.history.version;
    disturb();
    await failure();
    server.delete('Service', 'demo/second');
    server.apply(apiService('demo/third'));
    await has('Service demo/third');
    expect(server.requests.at(-1)!.url).toContain(`resourceVersion=${version}`);
    expect(recorder.log()).toEqual([
      'added Service demo/second',
      'deleted Service demo/second',
      'added Service demo/third',
    ]);
    expect(lists()).toEqual([]);
  });

  it('go on from the version of a bookmark', async () => {
    server.apply(apiSlice('demo/other', []));
    const version = server.history.version;
    services().bookmark();
    services().reset();
    await failure();
    await eventually(() => expect(server.requests.at(-1)!.url).toContain(`resourceVersion=${version}`));
    expect(recorder.present).toEqual([]);
  });

  it.each(['header', 'event'] as const)(
    'are replaced by a list after 410 (%s), without losing what exists',
    async (how) => {
      server.misbehave.refuseWatchVersions = how;
      await server.stop();
      server.apply(apiService('demo/second'));
      server.delete('EndpointSlice', 'demo/web-a');
      await server.start();
      await has('Service demo/second');
      await eventually(() => expect(recorder.keys()).not.toContain('EndpointSlice demo/web-a'));
      expect([...recorder.log()].sort()).toEqual(['added Service demo/second', 'deleted EndpointSlice demo/web-a']);
    },
  );

  it.each([
    ['garbage', () => services().raw('<html>502</html>\n')],
    ['an unknown event', () => services().raw('{"type":"RENAMED","object":{}}\n')],
    ['a version from before', () => services().bookmark({}, 1)],
    ['any other error', () => services().error({ code: 400, message: 'no' })],
  ])('are replaced by a list after %s', async (_, disturb) => {
    disturb();
    server.apply(apiService('demo/second'));
    await has('Service demo/second');
    expect(lists()).toEqual([{ resource: 'services', streamed: true }]);
    expect(recorder.log()).toEqual(['added Service demo/second']);
  });

  it('go on after what takes an object in has failed', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    const take = recorder.event.bind(recorder);
    recorder.event = (event) => {
      if (event.object.metadata.name === 'bad') throw new TypeError('no such field');
      take(event);
    };
    server.apply(apiService('demo/bad'));
    await eventually(() =>
      expect(warned.mock.calls.flat().map(String)).toContain('BackgroundFailure: API reader: no such field'),
    );
    server.apply(apiService('demo/good'));
    await has('Service demo/good');
  });

  it('leave an event without an object alone', async () => {
    services().raw('{"type":"DELETED"}\n{"type":"ADDED","object":null}\n');
    server.apply(apiService('demo/second'));
    await has('Service demo/second');
    expect(lists()).toEqual([]);
    await eventually(() => {
      expect(recorder.present).toEqual([{ where: 'services', message: 'Objects without a name were left out: 1' }]);
    });
  });

  it('read an object of megabytes', async () => {
    server.apply(apiService('demo/large', { annotations: { large: 'x'.repeat(3_000_000) } }));
    await has('Service demo/large');
    expect(lists()).toEqual([]);
  });

  it('take their activity from every word of the server', async () => {
    const before = source!.lastActivity();
    expect([...before.keys()].sort()).toEqual(['endpointslices', 'nodes', 'servicecidrs', 'services']);
    await eventually(() => expect(performance.now()).toBeGreaterThan(before.get('services')!));
    services().bookmark();
    await eventually(() => expect(source!.lastActivity().get('services')).toBeGreaterThan(before.get('services')!));
  });
});

describe('trouble', () => {
  it('keeps everything while the server is away, says so, and catches up when it is back', async () => {
    const clock = new FakeClock();
    applyWeb();
    await start({ clock });
    await synced();
    await server.stop();
    await eventually(async () => {
      await clock.advance(1_000);
      expect(recorder.present).toHaveLength(4);
    });
    expect(recorder.present[0]!.message).toContain('the last known state stays in force: GET https://127.0.0.1:');
    expect(recorder.keys()).toEqual(EVERYTHING);

    recorder.events.length = 0;
    server.compact();
    server.delete('Service', 'demo/web');
    server.apply(apiService('demo/new'));
    await server.start();
    await eventually(async () => {
      await clock.advance(1_000);
      expect([...recorder.log()].sort()).toEqual(['added Service demo/new', 'deleted Service demo/web']);
      expect(recorder.present).toEqual([]);
    });
  });

  it('cuts a watch that is silent for longer than it was asked for', async () => {
    const clock = new FakeClock();
    applyWeb();
    // The client measures the silence.
    client.close();
    client = await createApiClient({ kubeconfig: join(folder, 'kubeconfig'), userAgent: 'test', clock });
    await start({ clock });
    await synced();
    // The first watch began as a streaming list, the second one does not.
    for (const name of ['demo/second', 'demo/third']) {
      observed.length = 0;
      server.misbehave.stallWatches = true;
      server.apply(apiService(name));
      await clock.advance(329_000);
      expect(failures()).toEqual([]);
      await clock.advance(1_000);
      await eventually(() => expect(failures()).toHaveLength(4));
      for (const { error } of failures()) expect(error.message).toContain('no byte for 330 s');
      server.misbehave.stallWatches = false;
      await clock.advance(250);
      await has(`Service ${name}`);
      await eventually(() => expect(observed.filter(({ kind }) => kind === 'watchStarted')).toHaveLength(4));
      expect(lists()).toEqual([]);
      expect(recorder.present).toEqual([]);
    }
  });

  it('forgets former failures once a watch has worked for a second', async () => {
    const clock = new FakeClock();
    await start({ clock });
    await synced();
    for (let round = 0; round < 3; round++) {
      observed.length = 0;
      await clock.advance(2_000);
      // Replaced by a streaming list at once.
      server.watches('services').at(-1)!.error({ code: 410, message: 'too old' });
      await eventually(() => expect(lists()).toHaveLength(1));
      expect(failures()).toMatchObject([{ retryInMs: 0 }]);
    }
  });

  it('waits as long as the server asks for', async () => {
    const clock = new FakeClock();
    server.misbehave.answers.push(...Array.from({ length: 4 }, () => ({ status: 429, retryAfterSeconds: 7 })));
    await start({ clock });
    await eventually(() => expect(failures()).toHaveLength(4));
    expect(failures()[0]).toMatchObject({ retryInMs: 7_000 });
    await clock.advance(6_900);
    expect(server.requests).toHaveLength(4);
    await clock.advance(100);
    await synced();
  });

  it('asks ever more rarely while versions are refused at once', async () => {
    const clock = new FakeClock();
    await start({ clock });
    await synced();
    server.misbehave.refuseWatchVersions = 'header';
    server.misbehave.streamingLists = false;
    server.watches('services')[0]!.reset();
    const waits = () =>
      failures()
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
    await start();
    await synced();
    await source!.stop();
    const { length } = recorder.events;
    server.apply(apiService('demo/late'));
    await eventually(() => expect(server.watches()).toEqual([]));
    expect(recorder.events).toHaveLength(length);
  });
});
