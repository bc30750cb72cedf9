import { parseIp } from '../../src/core/index.ts';
import { FamilyProxy, type FamilyProxyOptions, type ProxyEvent, type ProxyObserver } from '../../src/proxy/index.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeDataplane } from './fake-dataplane.ts';
import { FakeServiceStore } from './service-objects.ts';

/** A proxy of one family with everything around it faked. */
export class FamilyBench {
  readonly clock = new FakeClock();
  readonly store = new FakeServiceStore();
  readonly dataplane = new FakeDataplane();
  readonly events: ProxyEvent[] = [];
  readonly localAddresses = ['192.0.2.1'].map(parseIp);
  readonly proxy: FamilyProxy;

  constructor(observers: readonly ProxyObserver[] = [], options: Partial<FamilyProxyOptions> = {}) {
    this.proxy = new FamilyProxy({
      clock: this.clock,
      random: () => 0,
      minIntervalMs: 1_000,
      maxIntervalMs: 3_600_000,
      retry: { firstMs: 1_000, maxMs: 30_000 },
      nodeName: 'n1',
      settings: {
        detectLocal: { mode: 'NodeCIDR' },
        masqueradeBit: 14,
        masqueradeAll: false,
        nodePortAddresses: 'primary',
      },
      store: this.store,
      dataplane: this.dataplane,
      localAddresses: () => ({ all: this.localAddresses, own: this.localAddresses }),
      pauses: () => () => undefined,
      observers: [...observers, (event) => this.events.push(event)],
      ...options,
    });
  }

  put(name: string, ...endpoints: string[]): void {
    this.store.put(name, endpoints);
  }

  /** Starts, waits until a request would run at once, and forgets what happened so far. */
  async settle(): Promise<void> {
    this.proxy.start();
    await this.clock.advance(5_000);
    this.events.length = 0;
    this.dataplane.calls.length = 0;
  }

  get kinds(): string[] {
    return this.events.map((event) => event.kind);
  }

  last<Kind extends ProxyEvent['kind']>(kind: Kind): Extract<ProxyEvent, { kind: Kind }> {
    return this.events.findLast((event) => event.kind === kind) as Extract<ProxyEvent, { kind: Kind }>;
  }
}
