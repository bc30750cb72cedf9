import { type Clock, parseCidr, systemClock } from '../src/core/index.ts';
import { type EndpointSlice, type ObjectEvent, ObjectStore } from '../src/kube/index.ts';
import { changeOf, FamilyProxy, type ProxyEvent } from '../src/proxy/index.ts';
import { IptablesDataplane } from '../src/proxy/iptables/index.ts';
import { makeService, makeSlice } from '../test/fakes/service-objects.ts';
import { recordingExec } from '../test/lab/iptables/fixtures.ts';
import { sampleAddress } from './cluster.ts';
import { median, report } from './report.ts';

const MANY = 10_000;
const FEW = 100;
const ENDPOINTS = 10;
const CHANGES = 400;
/** Until the compiler has seen enough of the code to optimise it. */
const WARM_UP = 400;

interface Measured {
  readonly ms: number;
  readonly bytes: number;
}

/**
 * The work in this process for one changed endpoint, from the object event to the text for iptables-restore, which is
 * answered at once: at 10,000 Services, and at 100 in turns in the same run.
 */
export async function benchIncremental(): Promise<void> {
  const many = await startProxy(MANY);
  const few = await startProxy(FEW);
  const inMany: Measured[] = [];
  const inFew: Measured[] = [];
  for (let change = 0; change < WARM_UP + CHANGES; change++) {
    const counts = change >= WARM_UP;
    for (const [proxy, into] of [[many, inMany] as const, [few, inFew] as const]) {
      const measured = await proxy.changeOneEndpoint(change);
      if (counts) into.push(measured);
    }
  }
  await many.stop();
  await few.stop();
  const peerName = `at ${FEW} Services`;
  const figure = (of: (values: readonly Measured[]) => number) => ({ ours: of(inMany), peer: of(inFew), peerName });
  report(`incremental, ${MANY} x ${ENDPOINTS}, ${CHANGES} changes`, [
    {
      ...{ what: 'event to restore text, median', unit: 'ms', target: 'at most 2 ms and 1.5 x' },
      ...figure((values) => median(values.map(({ ms }) => ms))),
    },
    {
      ...{ what: 'restore input, median', unit: 'bytes', target: 'at most 4096 bytes' },
      ...figure((values) => median(values.map(({ bytes }) => bytes))),
    },
    {
      ...{ what: 'restore input, largest', unit: 'bytes', target: 'at most 4096 bytes' },
      ...figure((values) => Math.max(...values.map(({ bytes }) => bytes))),
    },
  ]);
}

/** A proxy that has made its first sync of so many Services, and a way to change one endpoint of one of them. */
async function startProxy(services: number) {
  const store = new ObjectStore();
  for (let n = 0; n < services; n++) {
    const object = makeService(serviceName(n), {
      clusterIP: sampleAddress(96, n),
      ports: [{ name: 'http', port: 80 }],
    });
    store.apply({ type: 'added', object });
    store.apply({ type: 'added', object: slice(n, 0) });
  }
  const { exec, restores } = recordingExec(async () => ({ status: 0, stdout: '', stderr: '' }));
  let finished: (event: ProxyEvent) => void = () => {};
  const proxy = new FamilyProxy({
    clock: promptClock,
    ...{ minIntervalMs: 0, maxIntervalMs: 3_600_000, retry: { firstMs: 1000, maxMs: 30_000 } },
    nodeName: 'node-1',
    settings: {
      detectLocal: { mode: 'ClusterCIDR', cidrs: [parseCidr('10.244.0.0/16')] },
      ...{ masqueradeBit: 14, masqueradeAll: false, nodePortAddresses: 'all' },
    },
    store,
    dataplane: new IptablesDataplane({ family: 'IPv4', variant: 'legacy', exec }),
    localAddresses: () => [],
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
    async changeOneEndpoint(change: number): Promise<Measured> {
      const event: ObjectEvent = { type: 'updated', object: slice((change * 7919) % services, change + 1) };
      const restoresBefore = restores.length;
      const synced = nextSync();
      const startedAt = performance.now();
      const touched = store.apply(event);
      proxy.touch(touched.services, changeOf(event, 'IPv4')!);
      await synced;
      const ms = performance.now() - startedAt;
      if (restores.length !== restoresBefore + 1)
        throw new Error(`The change led to ${restores.length - restoresBefore} restores instead of one`);
      return { ms, bytes: Buffer.byteLength(restores.at(-1)!) };
    },
    stop: () => proxy.stop(),
  };
}

/** The system's, but what is due at once runs as soon as the event loop turns: a timer of 0 ms waits a whole one. */
const promptClock: Clock = {
  ...systemClock,
  setTimer(callback, delayMs) {
    if (delayMs > 0) return systemClock.setTimer(callback, delayMs);
    const immediate = setImmediate(callback);
    return { cancel: () => clearImmediate(immediate) };
  },
};

function serviceName(n: number): string {
  return `bench/service-${n}`;
}

/** Ten endpoints on another node, one of which differs between generations; generation 0 is what the Service starts with. */
function slice(n: number, generation: number): EndpointSlice {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, index) => {
    const host = index === 3 && generation > 0 ? 20 + (generation % 200) : index;
    return { addresses: [`10.${200 + (n >> 8)}.${n & 255}.${host}`], nodeName: 'node-2' };
  });
  const made = makeSlice(serviceName(n), endpoints, { ports: [{ name: 'http', port: 8080 }] });
  const labels = { 'kubernetes.io/service-name': `service-${n}` };
  return { ...made, metadata: { ...made.metadata, labels } };
}
