import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeRouteKernel } from '../../../test/fakes/routes/fake-route-kernel.ts';
import { nodeObject } from '../../../test/fakes/routes/node-objects.ts';
import type { IpFamily } from '../../core/index.ts';
import type { Node } from '../../kube/index.ts';
import { ROUTE_MODES, type RouteMode } from '../plan/underlay.ts';
import { wireguardAnnotations } from '../wireguard/identity.ts';
import { FamilyRoutes } from './family-routes.ts';

const FAMILIES = ['IPv4', 'IPv6'] as const;
const ADDRESSES: Readonly<Record<IpFamily, (n: number) => string>> = {
  IPv4: (n) => (n < 6 ? `10.0.0.${n}` : `192.168.1.${n}`),
  IPv6: (n) => (n < 6 ? `fd00::${n}` : `fd01::${n}`),
};
const RANGES: Readonly<Record<IpFamily, (n: number) => string>> = {
  IPv4: (n) => (n === 0 ? '10.244.0.0/21' : `10.244.${n}.0/24`),
  IPv6: (n) => (n === 0 ? 'fd00:10:244::/61' : `fd00:10:244:${n}::/64`),
};
const UPLINK: Readonly<Record<IpFamily, readonly string[]>> = {
  IPv4: ['10.0.0.1/24', '10.0.0.77/24'],
  IPv6: ['fd00::1/120', 'fd00::77/120'],
};

type Step =
  | {
      readonly do: 'node';
      readonly name: string;
      readonly address: number;
      readonly range: number;
      readonly year: number | undefined;
    }
  | { readonly do: 'remove'; readonly name: string }
  | { readonly do: 'move'; readonly address: number }
  | { readonly do: 'mtu'; readonly link: string; readonly mtu: number }
  | { readonly do: 'flap'; readonly link: string }
  | { readonly do: 'delete-device' }
  | { readonly do: 'remove-object'; readonly n: number }
  | { readonly do: 'foreign' | 'foreign-gone'; readonly range: number }
  | { readonly do: 'restart' }
  | { readonly do: 'wait'; readonly ms: number };

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const link = fc.constantFrom('eth0', 'nodeplane-v4', 'nodeplane-v6', 'nodeplane-wg');
const number = fc.integer({ min: 2, max: 8 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('node' as const),
      name,
      address: number,
      range: fc.integer({ min: 0, max: 8 }),
      year: fc.constantFrom(2020, 2021, undefined),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('move' as const), address: fc.nat(1) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('mtu' as const), link, mtu: fc.constantFrom(1400, 1500, 9000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('flap' as const), link }) },
  { weight: 1, arbitrary: fc.constant({ do: 'delete-device' as const }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove-object' as const), n: fc.nat(20) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('foreign' as const, 'foreign-gone' as const),
      range: fc.integer({ min: 2, max: 8 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 60, 1500) }) },
);

const keyOf = (number: number) => new Uint8Array(32).fill(number);

/** A node of the cluster, whose routes are kept while others meddle. */
class Cluster {
  readonly clock = new FakeClock();
  readonly kernel: FakeRouteKernel;
  readonly nodes = new Map<string, Node>();
  readonly #family: IpFamily;
  readonly #mode: RouteMode;
  #routes: FamilyRoutes | undefined;

  constructor(family: IpFamily, mode: RouteMode, usesNexthops: boolean) {
    this.#family = family;
    this.#mode = mode;
    this.kernel = new FakeRouteKernel(family, { usesNexthops });
    this.kernel.addLink({ name: 'eth0', addresses: UPLINK[family].slice(0, 1) });
    this.setNode('own', 1, 1, undefined);
  }

  setNode(name: string, address: number, range: number, year: number | undefined): void {
    const [ip, podCidr] = [ADDRESSES[this.#family](address), RANGES[this.#family](range)];
    // Two nodes have the same key, and one has none.
    const annotations =
      name === 'a' ? {} : wireguardAnnotations(keyOf(name === 'b' ? 1 : name.charCodeAt(0) - 98), 51820);
    this.setObject(nodeObject({ name, ips: [ip], podCidrs: [podCidr], year, annotations }));
  }

  setObject(node: Node): void {
    this.nodes.set(node.metadata.name, node);
    this.#routes?.nodeChanged(node);
  }

  start(): void {
    const settings = { mode: this.#mode, vni: 1, port: 8472, mtu: undefined };
    const { kernel, clock } = this;
    this.#routes = new FamilyRoutes({
      family: this.#family,
      nodeName: 'own',
      settings,
      wireguard: { joins: () => {}, ground: () => ({ publicKey: keyOf(0), mtu: 1420 }), replaced() {}, changed() {} },
      kernel,
      clock,
      observe: () => {},
    });
    for (const node of this.nodes.values()) this.#routes.nodeChanged(node);
    this.#routes.start();
  }

  async restart(): Promise<void> {
    await this.#routes?.stop();
    this.start();
  }

  get #device(): string {
    if (this.#mode === 'wireguard') return 'nodeplane-wg';
    return this.#family === 'IPv4' ? 'nodeplane-v4' : 'nodeplane-v6';
  }

  async verify(): Promise<string[]> {
    return (await this.#routes!.verify()).map((drift) => JSON.stringify(drift));
  }

  async stop(): Promise<void> {
    await this.#routes?.stop();
  }

  async take(step: Step): Promise<void> {
    const { kernel } = this;
    switch (step.do) {
      case 'node':
        return this.setNode(step.name, step.address, step.range, step.year);
      case 'remove':
        this.nodes.delete(step.name);
        return this.#routes?.nodeRemoved(step.name);
      case 'move': {
        const uplink = UPLINK[this.#family][step.address]!;
        kernel.changeLink('eth0', { addresses: [uplink] });
        return this.setObject(
          nodeObject({ name: 'own', ips: [uplink.replace(/\/.*/, '')], podCidrs: [RANGES[this.#family](1)] }),
        );
      }
      case 'mtu':
        return kernel.changeLink(step.link, { mtu: step.mtu });
      case 'flap':
        kernel.changeLink(step.link, { up: false });
        return kernel.changeLink(step.link, { up: true });
      case 'delete-device':
        return kernel.deleteLink(this.#device);
      case 'remove-object':
        return kernel.removeObject(step.n);
      case 'foreign':
        return kernel.addForeignRoute(RANGES[this.#family](step.range));
      case 'foreign-gone':
        return kernel.removeForeignRoute(RANGES[this.#family](step.range));
      case 'restart':
        return this.restart();
      case 'wait':
        return this.clock.advance(step.ms, 'held');
    }
  }
}

/** A device that was made anew has another index, and nexthops are numbered in the order they came. */
function withoutNumbers(drifts: readonly string[]): string[] {
  return drifts.map((drift) => drift.replace(/ (dev|nhid|nexthop) \d+/g, ' $1'));
}

it('whatever nodes and others did, the kernel ends as a fresh start makes it', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...FAMILIES),
      fc.constantFrom(...ROUTE_MODES),
      fc.boolean(),
      fc.array(step, { maxLength: 25 }),
      async (family, mode, withNexthops, steps) => {
        const usesNexthops = withNexthops && family === 'IPv4';
        const lived = new Cluster(family, mode, usesNexthops);
        lived.start();
        for (const step of steps) await lived.take(step);
        await lived.clock.advance(130_000);
        const fresh = new Cluster(family, mode, usesNexthops);
        for (const step of steps) {
          // What happened to the node's own link counts, what happened to ours does not.
          if (step.do === 'move') await fresh.take(step);
          if (step.do === 'mtu' && step.link === 'eth0') await fresh.take(step);
        }
        for (const route of lived.kernel.foreignRoutes()) fresh.kernel.addForeignRoute(route);
        fresh.nodes.clear();
        for (const node of lived.nodes.values()) fresh.setObject(node);
        fresh.start();
        await fresh.clock.advance(1000);
        expect(lived.kernel.print()).toBe(fresh.kernel.print());
        expect(withoutNumbers(await lived.verify())).toEqual(withoutNumbers(await fresh.verify()));
        await lived.stop();
        await fresh.stop();
      },
    ),
    { numRuns: 1000 },
  );
}, 120_000);
