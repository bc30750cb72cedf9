import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type IpAddress, type IpFamily, parseIp } from '../../src/core/index.ts';
import type { Dataplane, Plan, ServicePortPlan } from '../../src/proxy/index.ts';
import { completePlan } from '../samples/complete-plan.ts';
import { randomChanges } from '../samples/random-plan.ts';
import { type SamplePort, sampleNode, samplePort } from '../samples/sample-plan.ts';

/** Text by the name of an object in the kernel: all there is, made by us or by others. */
export type KernelDump = Readonly<Record<string, unknown>>;

/** A kernel in memory, for one family, with the dataplane that is to be tested on it. */
export interface DataplaneRig {
  /** Makes the dataplane, as a new process does: it knows nothing but what the kernel holds. */
  start(): Dataplane;
  dump(): KernelDump;
  /** How often the kernel was written to so far. */
  writes(): number;
  /** Somebody else takes away or changes something of what is programmed. */
  damage(): void;
  /** Somebody else makes objects of his own, some with names and places like ours. */
  addForeign(): void;
  /** From now on the kernel refuses what has to do with these ClusterIPs. */
  refuse(clusterIps: readonly IpAddress[]): void;
  /** Lets end what takes its time: connections of endpoints that are gone. @default nothing does */
  settle?(): Promise<void>;
}

/** What is to be tested. */
export interface DataplaneSuite {
  readonly make: (family: IpFamily) => DataplaneRig;
  /** Every sync is one write at most, so that no packet meets a half-made state. */
  readonly isAtomic: boolean;
  /** Objects that may stay when nobody needs them any more, by their name in the dump. @default none */
  readonly mayStay?: (name: string) => boolean;
}

/** A rig with a plan that changes, and what is asked of both. */
class Bench {
  readonly rig: DataplaneRig;
  readonly plan: Plan & { readonly ports: Map<string, ServicePortPlan> };
  readonly #family: IpFamily;
  #dataplane: Dataplane;

  constructor(suite: DataplaneSuite, family: IpFamily, ports: readonly ServicePortPlan[] = []) {
    this.rig = suite.make(family);
    this.#family = family;
    const node = sampleNode({ nodeIp: parseIp(family === 'IPv4' ? '192.168.0.7' : 'fd00:192:168::7') });
    this.plan = { family, node, ports: new Map(ports.map((port) => [port.key, port])) };
    this.#dataplane = this.rig.start();
  }

  async restart(): Promise<void> {
    await this.#dataplane.close?.();
    this.#dataplane = this.rig.start();
  }

  resync = () => this.#dataplane.resync(this.plan);
  verify = () => this.#dataplane.verify();
  cleanup = () => this.#dataplane.cleanup();

  upsert(...upserted: readonly ServicePortPlan[]) {
    for (const port of upserted) this.plan.ports.set(port.key, port);
    return this.#dataplane.sync(this.plan, { upserted, removed: [] });
  }

  remove(port: ServicePortPlan) {
    this.plan.ports.delete(port.key);
    return this.#dataplane.sync(this.plan, { upserted: [], removed: [port] });
  }

  /** Makes random changes one after the other, calling `checked` after each. */
  async change(steps: number, seed: number, checked: (step: number) => Promise<void>): Promise<void> {
    let step = 0;
    for (const delta of randomChanges(this.#family, steps, this.plan.ports, seed)) {
      expect((await this.#dataplane.sync(this.plan, delta)).leftOut ?? []).toEqual([]);
      await this.rig.settle?.();
      await checked(step++);
    }
  }

  /** How often the kernel is written to by `work`. */
  writesOf = async (work: () => Promise<unknown>): Promise<number> => {
    const before = this.rig.writes();
    await work();
    return this.rig.writes() - before;
  };
}

/**
 * Holds a dataplane to the contract of `Dataplane`, as all dataplanes are held: the same tests for each, on a kernel in
 * memory, in both families.
 */
export function testDataplane(suite: DataplaneSuite): void {
  describe.each(['IPv4', 'IPv6'] as const)('as every dataplane, %s', { timeout: 60_000 }, (family) => {
    const v4 = family === 'IPv4';
    const clusterIp = (n: number) => (v4 ? `10.96.0.${n}` : `fd00:10:96::${n.toString(16)}`);
    const endpoint = (n: number) => {
      const host = n.toString(v4 ? 10 : 16);
      return v4 ? `10.244.${n >> 8}.${n & 255}:8080` : `[fd00:10:244::${host}]:8080`;
    };
    const web = (n: number, more: Partial<SamplePort> = {}) =>
      samplePort({ name: `shop/web-${n}`, clusterIp: clusterIp(n), remote: [endpoint(n)], ...more });
    const several = (count: number) => Array.from({ length: count }, (_, n) => web(n + 1));
    const bench = (ports?: readonly ServicePortPlan[]) => new Bench(suite, family, ports);
    const complete = () => bench([...completePlan(family).ports.values()]);

    /** What a full sync makes of these ports on a fresh machine. */
    const freshDump = async (ports: Iterable<ServicePortPlan>): Promise<KernelDump> => {
      const fresh = bench([...ports]);
      await fresh.resync();
      return fresh.rig.dump();
    };
    const expectDump = (rig: DataplaneRig, expected: KernelDump) => {
      const mayStay = suite.mayStay ?? (() => false);
      const counted = Object.entries(rig.dump()).filter(([name]) => name in expected || !mayStay(name));
      expect(Object.fromEntries(counted)).toEqual(expected);
    };

    it('writes nothing in a full sync where nothing differs', async () => {
      const { rig, resync, writesOf, verify } = complete();
      const writes = await writesOf(resync);
      if (suite.isAtomic) expect(writes).toBe(1);
      else expect(writes).toBeGreaterThan(40);
      const before = rig.dump();
      expect(await writesOf(resync)).toBe(0);
      expect(rig.dump()).toEqual(before);
      expect(await verify()).toEqual([]);
    });

    it('writes nothing after a restart', async () => {
      const one = complete();
      await one.resync();
      const before = one.rig.dump();
      await one.restart();
      expect(await one.writesOf(one.resync)).toBe(0);
      expect(one.rig.dump()).toEqual(before);
      expect(await one.verify()).toEqual([]);
    });

    it('has what a fresh full sync has, whatever changed', async () => {
      await fc.assert(
        fc.asyncProperty(fc.integer(), async (seed) => {
          const one = bench();
          await one.resync();
          let writes = one.rig.writes();
          await one.change(30, seed, async (step) => {
            if (suite.isAtomic) expect(one.rig.writes() - writes).toBeLessThanOrEqual(1);
            writes = one.rig.writes();
            if (step % 15 !== 14) return;
            expect(await one.verify()).toEqual([]);
            expectDump(one.rig, await freshDump(one.plan.ports.values()));
          });
        }),
        { numRuns: 6 },
      );
    });

    it('hands a destination from one Service to another in one sync, whichever is named first', async () => {
      const taken = { externalIps: [v4 ? '203.0.113.1' : '2001:db8::1'], nodePort: 30_080 };
      const ends = [
        [web(1), web(2, taken)],
        [web(1, taken), web(2)],
      ];
      for (const reversed of [false, true]) {
        const one = bench(ends[0]);
        await one.resync();
        for (const ports of [ends[1]!, ends[0]!]) {
          const writes = await one.writesOf(() => one.upsert(...(reversed ? ports.toReversed() : ports)));
          if (suite.isAtomic) expect(writes).toBe(1);
          await one.rig.settle?.();
          expectDump(one.rig, await freshDump(ports));
        }
      }
    });

    it('finds what others changed, and repairs it', async () => {
      const { rig, resync, verify } = complete();
      await resync();
      const before = rig.dump();
      rig.damage();
      expect(rig.dump()).not.toEqual(before);
      expect((await verify()).length).toBeGreaterThan(0);
      await resync();
      expect(rig.dump()).toEqual(before);
      expect(await verify()).toEqual([]);
    });

    it('leaves out a Service port that is refused, and serves the others', async () => {
      const [bad, good] = [web(7), several(12).filter((port) => port.name !== 'shop/web-7')];
      const one = bench([...good, bad]);
      one.rig.refuse([bad.clusterIp]);
      const { leftOut } = await one.resync();
      expect(leftOut).toMatchObject([{ key: bad.key, name: bad.name }]);
      expect(leftOut![0]!.reason).not.toBe('');
      expectDump(one.rig, await freshDump(good));
      expect(await one.verify()).toEqual([]);
      expect((await one.upsert(web(20))).leftOut).toEqual(leftOut);

      one.rig.refuse([]);
      expect((await one.upsert(bad)).leftOut).toEqual([]);
      await one.rig.settle?.();
      expectDump(one.rig, await freshDump(one.plan.ports.values()));
    });

    it('leaves out of a change what is refused, until it goes or everything is tried again', async () => {
      const [bad, worse] = [web(20), web(21)];
      const one = bench(several(5));
      await one.resync();
      one.rig.refuse([bad.clusterIp, worse.clusterIp]);
      expect((await one.upsert(bad, web(22), worse)).leftOut!.map(({ key }) => key)).toEqual([bad.key, worse.key]);
      await one.rig.settle?.();
      expectDump(one.rig, await freshDump([...several(5), web(22)]));
      expect((await one.remove(worse)).leftOut!.map(({ key }) => key)).toEqual([bad.key]);
      one.rig.refuse([]);
      expect((await one.resync()).leftOut).toEqual([]);
      expectDump(one.rig, await freshDump(one.plan.ports.values()));
    });

    it('leaves alone what is not ours, and takes away all that is', async () => {
      const one = complete();
      one.rig.addForeign();
      const before = one.rig.dump();
      expect(Object.keys(before).length).toBeGreaterThan(0);
      await one.resync();
      await one.restart();
      await one.resync();
      await one.cleanup();
      expect(one.rig.dump()).toEqual(before);
      await one.resync();
      expect(await one.verify()).toEqual([]);
    });

    it('takes a Service with very many endpoints and addresses, and is rid of it again', async () => {
      const outer = (n: number) => (v4 ? `203.0.${n >> 8}.${n & 255}` : `2001:db8::${n.toString(16)}`);
      const large = web(30, {
        remote: Array.from({ length: 800 }, (_, n) => endpoint(n + 256)),
        externalIps: Array.from({ length: 20 }, (_, n) => outer(n + 1)),
        nodePort: 30_080,
      });
      const one = bench(several(3));
      await one.resync();
      expect((await one.upsert(large)).leftOut ?? []).toEqual([]);
      expect(await one.verify()).toEqual([]);
      expectDump(one.rig, await freshDump([...several(3), large]));
      await one.remove(large);
      await one.rig.settle?.();
      // What goes on beside the syncs has ended by then.
      expect(await one.verify()).toEqual([]);
      expectDump(one.rig, await freshDump(several(3)));
    });
  });
}
