import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { apiEndpoints, apiNode, apiService, apiSlice } from '../../../test/fakes/api-server/index.ts';
import { ApiSourceFixture, EVERYTHING, eventually } from '../../../test/fakes/api-source-fixture.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { proxyResources } from '../../proxy/index.ts';

let t: ApiSourceFixture;

beforeEach(async () => {
  t = await ApiSourceFixture.create();
});

afterEach(() => t.stop());

describe('what is read', () => {
  it('leaves selecting to the server: relabelling an object adds or deletes it', async () => {
    const ofOthers = { 'service.kubernetes.io/service-proxy-name': 'other' };
    t.server.apply(apiService('demo/web'), apiService('demo/theirs', { labels: ofOthers }));
    t.server.apply(apiService('demo/headless', { spec: { clusterIP: 'None' } }));
    t.server.apply(apiSlice('demo/headless', ['10.244.0.9'], { labels: { 'service.kubernetes.io/headless': '' } }));
    t.server.apply(apiNode('node-2'));
    await t.start();
    await t.synced();
    expect(t.recorder.keys()).toEqual(['Node node-1', 'Service demo/web', 'ServiceCIDR kubernetes']);

    t.recorder.events.length = 0;
    t.server.apply(apiService('demo/theirs'));
    await t.has('Service demo/theirs');
    t.server.apply(apiService('demo/theirs', { labels: ofOthers }));
    await eventually(() =>
      expect(t.recorder.log()).toEqual(['added Service demo/theirs', 'deleted Service demo/theirs']),
    );
  });

  it('reads only the Services of its own name when it has one', async () => {
    const label = 'service.kubernetes.io/service-proxy-name';
    t.server.apply(apiService('demo/web'), apiService('demo/ours', { labels: { [label]: 'ours' } }));
    t.server.apply(apiService('demo/theirs', { labels: { [label]: 'theirs' } }));
    await t.start({ resources: proxyResources('node-1', 'ours') });
    await t.synced();
    expect(t.recorder.keys().filter((key) => key.startsWith('Service '))).toEqual(['Service demo/ours']);
  });

  it('says which object cannot be used, keeps its last good state, and goes on with the others', async () => {
    t.applyWeb();
    t.server.apply(apiService('demo/bad', { spec: { ports: [{ port: 70_000 }] } }));
    await t.start();
    await t.synced();
    const problem = (name: string) => ({
      where: 'services',
      object: `Service demo/${name}`,
      field: 'spec.ports[0].port',
      message: 'Expected a port number from 1 to 65535, found 70000',
    });
    await eventually(() => expect(t.recorder.present).toEqual([problem('bad')]));
    expect(t.recorder.keys()).toEqual(EVERYTHING);

    t.server.apply(apiService('demo/web', { spec: { ports: [{ port: 70_000 }] } }));
    await eventually(() => expect(t.recorder.present).toEqual([problem('bad'), problem('web')]));
    expect(t.recorder.keys()).toEqual(EVERYTHING);

    t.server.delete('Service', 'demo/bad');
    t.server.apply(apiService('demo/web'));
    await eventually(() => expect(t.recorder.present).toEqual([]));
    expect(t.recorder.keys()).toEqual(EVERYTHING);
    expect(t.recorder.violations).toEqual([]);
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
    t.server.misbehave.rules = [others];
    t.applyWeb();
    await t.start({ clock });
    await t.has('Service demo/web', 'Node node-1', 'ServiceCIDR kubernetes');
    await eventually(async () => {
      await clock.advance(10_000);
      expect(t.recorder.present).toEqual([
        {
          where: 'endpointslices',
          message: expect.stringMatching(/answered 403: .* resource "endpointslices"/),
          unread: true,
        },
      ]);
    });
    await clock.advance(120_000);
    expect(t.recorder.isSynced).toBe(false);

    t.server.misbehave.rules = [others, { apiGroups: ['discovery.k8s.io'], resources: ['*'], verbs: all }];
    await eventually(async () => {
      await clock.advance(1_000);
      expect(t.recorder.isSynced).toBe(true);
    });
    await clock.advance(1_000);
    expect(t.recorder.present).toEqual([]);
    expect(t.recorder.keys()).toEqual(EVERYTHING);
  });

  it('waits 30 s for a Node with an address, and says so', async () => {
    const clock = new FakeClock();
    t.server.apply(apiNode('node-1', ''));
    t.applyWeb();
    await t.start({ clock });
    await t.has(...EVERYTHING);
    await eventually(() => expect(t.lists()).toHaveLength(4));
    await clock.advance(29_000);
    expect(t.recorder.isSynced).toBe(false);
    await clock.advance(1_100);
    expect(t.recorder.isSynced).toBe(true);
    expect(t.recorder.present).toMatchObject([{ where: 'nodes', object: 'Node node-1' }]);

    t.server.apply(apiNode('node-1'));
    await eventually(async () => {
      await clock.advance(100);
      expect(t.recorder.present).toEqual([]);
    });
  });

  it('does not say that a Node is not there while Nodes cannot be read', async () => {
    const clock = new FakeClock();
    const all = ['list', 'watch'];
    const groups = ['', 'discovery.k8s.io', 'networking.k8s.io'];
    t.server.misbehave.rules = [
      { apiGroups: groups, resources: ['services', 'endpointslices', 'servicecidrs'], verbs: all },
    ];
    t.applyWeb();
    await t.start({ clock });
    await eventually(async () => {
      await clock.advance(10_000);
      expect(t.recorder.isSynced).toBe(true);
    });
    await clock.advance(100);
    const unread = {
      where: 'nodes',
      message: expect.stringMatching(/answered 403: .* resource "nodes"/),
      unread: true,
    };
    expect(t.recorder.present).toEqual([unread]);
  });

  it('waits for the ServiceCIDRs until they are there or cannot be read', async () => {
    const clock = new FakeClock();
    t.server.misbehave.endlessLists.add('servicecidrs');
    t.applyWeb();
    await t.start({ clock });
    await t.has(...EVERYTHING);
    await eventually(() => expect(t.lists()).toHaveLength(3));
    expect(t.recorder.isSynced).toBe(false);
    t.server.watches('servicecidrs')[0]!.reset();
    await t.synced();
    expect(t.lists()).toHaveLength(3);
  });

  it('comes at once when the Node gets its address', async () => {
    const clock = new FakeClock();
    t.server.delete('Node', 'node-1');
    await t.start({ clock });
    await eventually(() => expect(t.lists()).toHaveLength(4));
    expect(t.recorder.isSynced).toBe(false);
    t.server.apply(apiNode('node-1'));
    await t.synced();
  });

  it.each([
    ['the server does not know them', () => t.server.misbehave.missingGroups.add('networking.k8s.io')],
    [
      'we may not read them',
      () => {
        const verbs = ['list', 'watch'];
        t.server.misbehave.rules = [{ apiGroups: ['', 'discovery.k8s.io'], resources: ['*'], verbs }];
      },
    ],
  ])('does not wait for ServiceCIDRs when %s', async (_, arrange) => {
    const clock = new FakeClock();
    arrange();
    t.applyWeb();
    await t.start({ clock });
    await t.synced();
    expect(t.recorder.keys()).toEqual(EVERYTHING.slice(0, 3));
  });
});

describe('without discovery.k8s.io', () => {
  it('makes slices of Endpoints', async () => {
    t.server.misbehave.missingGroups.add('discovery.k8s.io');
    t.server.apply(
      apiService('demo/web'),
      apiEndpoints('demo/web', [{ addresses: [{ ip: '10.244.0.5' }], ports: [{ port: 8080 }] }]),
      apiEndpoints('demo/hidden', [{ addresses: [{ ip: '10.244.0.6' }] }], { 'service.kubernetes.io/headless': '' }),
    );
    await t.start();
    await t.synced();
    expect(t.recorder.keys().filter((key) => key.startsWith('EndpointSlice'))).toEqual(['EndpointSlice demo/web-ipv4']);
    await eventually(() => expect(t.recorder.present).toEqual([]));

    t.server.apply(apiEndpoints('demo/web', [{ addresses: [{ ip: 'fd00::5' }], ports: [{ port: 8080 }] }]));
    await t.has('EndpointSlice demo/web-ipv6');
    expect(t.recorder.keys()).not.toContain('EndpointSlice demo/web-ipv4');
    t.server.delete('Endpoints', 'demo/web');
    await eventually(() =>
      expect(t.recorder.keys()).toEqual(['Node node-1', 'Service demo/web', 'ServiceCIDR kubernetes']),
    );
  });

  it('is not taken for granted at the first answer: a server that starts may not know it yet', async () => {
    t.server.misbehave.missingGroups.add('discovery.k8s.io');
    t.server.apply(apiService('demo/web'), apiSlice('demo/web', ['10.244.0.5']));
    await t.start();
    await eventually(() => expect(t.recorder.present).not.toEqual([]));
    t.server.misbehave.missingGroups.clear();
    await t.synced();
    expect(t.recorder.keys()).toContain('EndpointSlice demo/web-a');
    expect(t.server.count('watch', 'endpoints')).toBe(0);
  });
});
