import { parseCidr } from '../src/core/index.ts';
import type { EndpointSlice, ObjectEvent } from '../src/kube/index.ts';
import {
  changeOf,
  type Dataplane,
  FamilyProxy,
  type FamilyProxyOptions,
  type ProxyEvent,
  ServiceObjects,
} from '../src/proxy/index.ts';
import { makeService, makeSlice } from '../test/fakes/service-objects.ts';
import { sampleAddress } from './cluster.ts';
import { promptClock } from './prompt-clock.ts';

/** Of each Service. */
export const ENDPOINTS = 10;

/** What every proxy of a benchmark is told: where it is, and to sync whenever it is asked, never by itself. */
export const PROXY_OPTIONS = {
  minIntervalMs: 0,
  maxIntervalMs: 3_600_000,
  retry: { firstMs: 1000, maxMs: 30_000 },
  nodeName: 'node-1',
  settings: {
    detectLocal: { mode: 'ClusterCIDR', cidrs: [parseCidr('10.244.0.0/16')] },
    masqueradeBit: 14,
    masqueradeAll: false,
    nodePortAddresses: 'all',
  },
} as const satisfies Partial<FamilyProxyOptions>;

/** A proxy at work, without anything around it. */
export interface ChangingProxy {
  /** Changes one endpoint of one Service; `change` says which. Resolves to the milliseconds from the event to the commit. */
  changeOneEndpoint(change: number): Promise<number>;
  stop(): Promise<void>;
}

/** A proxy that has made its first sync of so many Services, and a way to change one endpoint of one of them. */
export async function startProxy(services: number, dataplane: Dataplane): Promise<ChangingProxy> {
  const store = new ServiceObjects();
  for (let n = 0; n < services; n++) {
    const object = makeService(serviceName(n), {
      clusterIP: sampleAddress(96, n),
      ports: [{ name: 'http', port: 80 }],
    });
    store.apply({ type: 'added', object });
    store.apply({ type: 'added', object: slice(n, 0) });
  }
  let finished: (event: ProxyEvent) => void = () => {};
  const proxy = new FamilyProxy({
    ...PROXY_OPTIONS,
    clock: promptClock(),
    store,
    dataplane,
    localAddresses: () => ({ all: [], own: [] }),
    observers: [(event) => finished(event)],
  });
  const nextSync = () =>
    new Promise<void>((resolve, reject) => {
      finished = (event) => {
        if (event.kind === 'syncFinished') resolve();
        else if (event.kind === 'syncFailed') reject(event.error);
      };
    });
  const firstSync = nextSync();
  proxy.start();
  await firstSync;

  return {
    async changeOneEndpoint(change) {
      const event: ObjectEvent = { type: 'updated', object: slice((change * 7919) % services, change + 1) };
      const synced = nextSync();
      const startedAt = performance.now();
      const touched = store.apply(event);
      proxy.touch(touched.services, changeOf(event, 'IPv4')!);
      await synced;
      return performance.now() - startedAt;
    },
    stop: () => proxy.stop(),
  };
}

function serviceName(n: number): string {
  return `bench/service-${n}`;
}

/** Ten endpoints on another node, one of which differs between generations; generation 0 is what the Service starts with. */
function slice(n: number, generation: number): EndpointSlice {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, index) => {
    const host = index === 3 && generation > 0 ? 20 + (generation % 200) : index;
    return { addresses: [`10.${200 + (n >> 8)}.${n & 255}.${host}`], nodeName: 'node-2' };
  });
  return makeSlice(serviceName(n), endpoints, { ports: [{ name: 'http', port: 8080 }] });
}
