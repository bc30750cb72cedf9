import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type EndpointSlice,
  HEADLESS_LABEL,
  type KubeObject,
  type ObjectEvent,
  objectKey,
  objectName,
  SERVICE_NAME_LABEL,
  SERVICE_PROXY_NAME_LABEL,
  type Service,
  type ServiceCIDR,
} from '../../../kube/index.ts';
import { isForProxy, serviceOfSlice } from './selectors.ts';
import { ServiceObjects, type TouchedObjects } from './service-objects.ts';

type Labels = Readonly<Record<string, string>>;

function service(name: string, labels: Labels = {}, clusterIP = '10.96.0.1'): Service {
  return { kind: 'Service', metadata: { name, namespace: 'demo', labels }, spec: { clusterIP } };
}

function slice(name: string, serviceName: string | undefined, labels: Labels = {}): EndpointSlice {
  const all = serviceName === undefined ? labels : { ...labels, [SERVICE_NAME_LABEL]: serviceName };
  return { kind: 'EndpointSlice', metadata: { name, namespace: 'demo', labels: all }, addressType: 'IPv4' };
}

const put = (object: KubeObject): ObjectEvent => ({ type: 'updated', object });
const remove = (object: KubeObject): ObjectEvent => ({ type: 'deleted', object });

const touched = (changes: Partial<TouchedObjects>): TouchedObjects => ({
  services: [],
  node: undefined,
  serviceCidrs: false,
  ...changes,
});

function sliceNames(store: ServiceObjects, serviceName: string): string[] {
  return store.slices(serviceName).map(({ metadata }) => metadata.name);
}

describe('Services', () => {
  it('are held by name and touched by every event', () => {
    const store = new ServiceObjects();
    const web = service('web');
    expect(store.apply({ type: 'added', object: web })).toEqual(touched({ services: ['demo/web'] }));
    expect(store.service('demo/web')).toBe(web);
    expect([...store.serviceNames()]).toEqual(['demo/web']);
    expect(store.apply(remove(web))).toEqual(touched({ services: ['demo/web'] }));
    expect(store.service('demo/web')).toBeUndefined();
    expect(store.apply(remove(web))).toEqual(touched({}));
  });

  it.each([
    ['the service-proxy-name label', service('web', { [SERVICE_PROXY_NAME_LABEL]: '' })],
    ['being headless', service('web', {}, 'None')],
  ])('are dropped by gaining and come back by losing: %s', (_, unselected) => {
    const store = new ServiceObjects();
    expect(store.apply(put(unselected))).toEqual(touched({}));
    expect(store.apply(put(service('web')))).toEqual(touched({ services: ['demo/web'] }));
    expect(store.apply(put(unselected))).toEqual(touched({ services: ['demo/web'] }));
    expect(store.service('demo/web')).toBeUndefined();
    expect(store.apply(remove(unselected))).toEqual(touched({}));
    expect(store.apply(put(service('web')))).toEqual(touched({ services: ['demo/web'] }));
    expect(store.service('demo/web')).toBeDefined();
  });
});

describe('EndpointSlices', () => {
  it('are held by Service, sorted by name, whether the Service exists or not', () => {
    const store = new ServiceObjects();
    for (const name of ['b', 'c', 'a']) {
      expect(store.apply(put(slice(name, 'web')))).toEqual(touched({ services: ['demo/web'] }));
    }
    store.apply(put(slice('d', 'other')));
    expect(sliceNames(store, 'demo/web')).toEqual(['a', 'b', 'c']);
    expect([...store.serviceNames()]).toEqual([]);
    store.apply(remove(slice('b', 'web')));
    expect(sliceNames(store, 'demo/web')).toEqual(['a', 'c']);
  });

  it('touch both Services when relabelled', () => {
    const store = new ServiceObjects();
    store.apply(put(slice('a', 'web')));
    expect(store.apply(put(slice('a', 'api')))).toEqual(touched({ services: ['demo/web', 'demo/api'] }));
    expect(sliceNames(store, 'demo/web')).toEqual([]);
    expect(sliceNames(store, 'demo/api')).toEqual(['a']);
  });

  it('leave the Service they are known under, even if the deletion carries another label', () => {
    const store = new ServiceObjects();
    store.apply(put(slice('a', 'web')));
    expect(store.apply(remove(slice('a', 'api')))).toEqual(touched({ services: ['demo/web'] }));
    expect(sliceNames(store, 'demo/web')).toEqual([]);
  });

  it.each([
    ['the headless label', slice('a', 'web', { [HEADLESS_LABEL]: '' })],
    ['no service name', slice('a', undefined)],
    ['an empty service name', slice('a', '')],
  ])('are not held with %s', (_, unselected) => {
    const store = new ServiceObjects();
    expect(store.apply(put(unselected))).toEqual(touched({}));
    expect(store.apply(put(slice('a', 'web')))).toEqual(touched({ services: ['demo/web'] }));
    expect(store.apply(put(unselected))).toEqual(touched({ services: ['demo/web'] }));
    expect(sliceNames(store, 'demo/web')).toEqual([]);
  });
});

it('holds Nodes by name and ServiceCIDRs sorted by name', () => {
  const store = new ServiceObjects();
  const node: KubeObject = { kind: 'Node', metadata: { name: 'n1', namespace: '' } };
  expect(store.apply(put(node))).toEqual(touched({ node: 'n1' }));
  expect(store.node('n1')).toBe(node);
  expect(store.apply(remove(node))).toEqual(touched({ node: 'n1' }));
  expect(store.node('n1')).toBeUndefined();
  const range = (name: string): ServiceCIDR => ({ kind: 'ServiceCIDR', metadata: { name, namespace: '' } });
  for (const name of ['b', 'a']) expect(store.apply(put(range(name)))).toEqual(touched({ serviceCidrs: true }));
  expect(store.serviceCidrs()).toEqual([range('a'), range('b')]);
  expect(store.apply(remove(range('a')))).toEqual(touched({ serviceCidrs: true }));
  expect(store.serviceCidrs()).toEqual([range('b')]);
});

it('after any events holds the selected objects, and names every Service whose view changed', () => {
  const labels = fc.constantFrom<Labels>({}, { [SERVICE_PROXY_NAME_LABEL]: 'x' }, { [HEADLESS_LABEL]: '' });
  const names = fc.constantFrom('a', 'b', 'c');
  const object = fc.oneof(
    fc.tuple(names, labels, fc.constantFrom('10.0.0.1', 'None')).map((args) => service(...args)),
    fc.tuple(names, fc.option(names, { nil: undefined }), labels).map((args) => slice(...args)),
  );
  const event = fc.tuple(fc.constantFrom<ObjectEvent['type']>('added', 'updated', 'deleted'), object);
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      const store = new ServiceObjects();
      const model = new Map<string, KubeObject>();
      for (const [type, object] of events) {
        const before = views(store);
        if (type === 'deleted') model.delete(objectKey(object));
        else model.set(objectKey(object), object);
        const { services } = store.apply({ type, object });
        const after = views(store);
        for (const [name, view] of after) {
          if (JSON.stringify(view) !== JSON.stringify(before.get(name))) expect(services).toContain(name);
        }
        const held = [...model.values()].filter(isSelected);
        for (const name of SERVICES) {
          const slices = held.filter((item) => item.kind === 'EndpointSlice' && serviceOfSlice(item) === name);
          slices.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
          const found = held.find((item) => item.kind === 'Service' && objectName(item) === name);
          expect(after.get(name)).toEqual({ service: found, slices });
        }
      }
    }),
  );
});

function isSelected(object: KubeObject): boolean {
  if (object.kind === 'Service') return isForProxy(object, '');
  return object.metadata.labels?.[HEADLESS_LABEL] === undefined;
}

const SERVICES = ['demo/a', 'demo/b', 'demo/c'];

function views(store: ServiceObjects): Map<string, unknown> {
  return new Map(SERVICES.map((name) => [name, { service: store.service(name), slices: store.slices(name) }]));
}
