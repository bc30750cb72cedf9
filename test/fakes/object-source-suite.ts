import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KINDS, type KubeObject, type ObjectHandler, type ObjectKind, type Resource } from '../../src/kube/index.ts';
import { proxyResources } from '../../src/proxy/index.ts';
import { type ApiObject, apiNode, apiService, apiServiceCidr, apiSlice, ObjectRecorder } from './api-server/index.ts';
import { EVERYTHING, eventually } from './api-source-fixture.ts';

/** A source, and the place its objects come from. */
export interface SourceUnderTest {
  /** Creates objects, or replaces those of the same kind and name. */
  apply(...objects: readonly ApiObject[]): void;
  /** @param key `demo/web`, or the name of a cluster-scoped object */
  delete(kind: string, key: string): void;
  start(resources: readonly Resource[], handler: ObjectHandler): Promise<void>;
  /** Stops the source; the place stays. */
  stop(): Promise<void>;
  /** Stops the source and removes the place. */
  close(): Promise<void>;
}

/** What every source of objects has to do, wherever they come from. */
export function testObjectSource(name: string, make: () => Promise<SourceUnderTest>): void {
  describe(name, () => {
    let source: SourceUnderTest;
    let recorder: ObjectRecorder;

    beforeEach(async () => {
      recorder = new ObjectRecorder();
      source = await make();
      source.apply(apiNode('node-1'), apiServiceCidr('kubernetes', ['10.96.0.0/12']));
      source.apply(apiService('demo/web'), apiSlice('demo/web', ['10.244.0.5']));
    });

    afterEach(async () => {
      await source.close();
      expect(recorder.violations).toEqual([]);
    });

    async function start(resources: readonly Resource[] = proxyResources('node-1', '')): Promise<void> {
      await source.start(resources, recorder);
      await eventually(() => expect(recorder.isSynced).toBe(true));
    }

    const has = (key: string) => eventually(() => expect(recorder.keys()).toContain(key));

    it('tells every object in the shape of types.ts, without what we do not read', async () => {
      const annotations = {
        'kubectl.kubernetes.io/last-applied-configuration': '{}',
        'nodeplane.io/ipvs-scheduler': 'sh',
      };
      const annotated = apiService('demo/annotated', { annotations });
      const creationTimestamp = '2025-01-01T00:00:00Z';
      source.apply({ ...annotated, metadata: { ...annotated.metadata, creationTimestamp } });
      await start();

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
            targetRef: 'web-0',
          },
        ],
        ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
      });
      expect(recorder.object('Service demo/annotated').metadata).toEqual({
        name: 'annotated',
        namespace: 'demo',
        creationTimestamp,
        annotations: { 'nodeplane.io/ipvs-scheduler': 'sh' },
      });
      expect(recorder.log().every((event) => event.startsWith('added '))).toBe(true);
      expect(recorder.present).toEqual([]);
    });

    it('tells what is added, updated and deleted', async () => {
      await start();
      recorder.events.length = 0;
      source.apply(apiService('demo/api'));
      await has('Service demo/api');
      source.apply(apiService('demo/api', { spec: { ports: [{ port: 81 }] } }));
      await eventually(() =>
        expect(recorder.object('Service demo/api')).toMatchObject({ spec: { ports: [{ port: 81 }] } }),
      );
      source.delete('Service', 'demo/api');
      await eventually(() => expect(recorder.keys()).toEqual(EVERYTHING));
      expect(recorder.log()).toEqual([
        'added Service demo/api',
        'updated Service demo/api',
        'deleted Service demo/api',
      ]);
    });

    it('does not mention updates of what we do not read', async () => {
      await start();
      recorder.events.length = 0;
      source.apply(apiService('demo/web', { spec: { selector: { app: 'other' } } }));
      source.apply(apiService('demo/last'));
      await has('Service demo/last');
      expect(recorder.log()).toEqual(['added Service demo/last']);
    });

    it('names the object and the field that cannot be used, and keeps the last good state until it is mended', async () => {
      await start();
      const problem = { object: 'Service demo/web', field: 'spec.ports[0].port' };
      const message = 'Expected a port number from 1 to 65535, found 70000';
      source.apply(apiService('demo/web', { spec: { ports: [{ port: 70_000 }] } }));
      source.apply(apiService('demo/last'));
      await has('Service demo/last');
      await eventually(() => expect(recorder.present).toMatchObject([{ ...problem, message }]));
      expect(recorder.object('Service demo/web')).toMatchObject({ spec: { ports: [{ port: 80 }] } });
      source.apply(apiService('demo/web'));
      await eventually(() => expect(recorder.present).toEqual([]));
      expect(recorder.log()).toEqual([...recorder.log().slice(0, EVERYTHING.length), 'added Service demo/last']);
    });

    it('reads its resources and no others', async () => {
      await start(proxyResources('node-1', '').filter(({ kind }) => kind === KINDS.Service));
      source.apply(apiNode('node-1', '192.0.2.77'));
      source.apply(apiService('demo/last'));
      await has('Service demo/last');
      expect(recorder.keys()).toEqual(['Service demo/last', 'Service demo/web']);
      expect(recorder.present).toEqual([]);
    });

    it('reads any other resource with the fields its decoder keeps', async () => {
      await start([{ name: 'endpointslices', kind: NAMES_ONLY, query: {}, essential: true }]);
      expect([...recorder.objects.values()]).toEqual([{ kind: 'EndpointSlice', metadata: WEB_A }]);
      source.apply(apiSlice('demo/web', ['10.244.0.6']));
      source.apply(apiSlice('demo/api', []));
      await has('EndpointSlice demo/api-a');
      expect(recorder.log()).toEqual(['added EndpointSlice demo/web-a', 'added EndpointSlice demo/api-a']);
    });

    it('tells nothing after stop', async () => {
      await start();
      await source.stop();
      const { length } = recorder.events;
      source.apply(apiService('demo/late'));
      source.delete('Service', 'demo/web');
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(recorder.events).toHaveLength(length);
    });
  });
}

const WEB_A = { namespace: 'demo', name: 'web-a' };

/** A decoder of another consumer, to whom only names matter. */
const NAMES_ONLY: ObjectKind<'EndpointSlice'> = {
  ...KINDS.EndpointSlice,
  read(value) {
    const { namespace, name } = (value as KubeObject).metadata;
    return { metadata: { namespace, name } } as ReturnType<typeof KINDS.EndpointSlice.read>;
  },
};
