import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { type IpFamily, parseCidr, parseIp } from '../../../src/core/index.ts';
import {
  keyOf,
  NetlinkRouteKernel,
  type RouteKernel,
  type RouteObject,
  type RouteOperation,
  textOf,
} from '../../../src/routes/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { FakeRouteKernel } from '../../fakes/routes/fake-route-kernel.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { patient } from '../patience.ts';
import { ip } from '../wire.ts';

afterAll(removeAll);

const SAMPLES: Readonly<
  Record<IpFamily, { uplink: string; own: string; near: string[]; inner: string[]; ranges: string[] }>
> = {
  IPv4: {
    uplink: '10.0.0.1/24',
    own: '10.244.1.0',
    near: ['10.0.0.2', '10.0.0.3', '192.168.1.1'],
    inner: ['10.244.2.0', '10.244.3.0'],
    ranges: ['10.244.2.0/24', '10.244.3.0/24', '10.244.4.0/25'],
  },
  IPv6: {
    uplink: 'fd00::1/64',
    own: 'fd00:10:244:1::',
    near: ['fd00::2', 'fd00::3', 'fd01::1'],
    inner: ['fd00:10:244:2::', 'fd00:10:244:3::'],
    ranges: ['fd00:10:244:2::/64', 'fd00:10:244:3::/64', 'fd00:10:244:4::/65'],
  },
};

type Step = RouteOperation | { readonly meddle: 'down' | 'up'; readonly link: 'eth0' | 'nodeplane' };

/** What may happen to a host with the links 102 (eth0) and 103 (the tunnel). */
function steps(family: IpFamily): fc.Arbitrary<Step> {
  const { near, inner, ranges } = SAMPLES[family];
  const mac = fc.nat(2).map((last) => Uint8Array.of(2, 0, 0, 0, 0, last));
  const direct = fc.record({
    outInterface: fc.constant(102),
    gateway: fc.constantFrom(...near).map(parseIp),
    onlink: fc.constant(false),
  });
  const tunnelled = fc.record({
    outInterface: fc.constant(103),
    gateway: fc.constantFrom(...inner).map(parseIp),
    onlink: fc.constant(true),
  });
  const hop = fc.oneof(direct, tunnelled);
  const id = fc.nat(2).map((n) => 0x4e500000 + n);
  const destination = fc.constantFrom(...ranges).map(parseCidr);
  const own = fc.constant<RouteObject>({ kind: 'route', destination: parseCidr(ranges[0]!), way: 'unreachable' });
  const byGateway = fc
    .tuple(destination, hop)
    .map(([to, via]): RouteObject => ({ kind: 'route', destination: to, way: 'gateway', ...via }));
  const byDevice = destination.map(
    (to): RouteObject => ({ kind: 'route', destination: to, way: 'device', outInterface: 103 }),
  );
  const byNexthop = fc.oneof(
    fc.tuple(id, hop).map(([one, via]): RouteObject => ({ kind: 'nexthop', id: one, ...via })),
    fc
      .tuple(destination, id)
      .map(([to, one]): RouteObject => ({ kind: 'route', destination: to, way: 'nexthop', id: one })),
  );
  const inside = fc
    .tuple(fc.constantFrom(...inner).map(parseIp), mac)
    .map(([to, lladdr]): RouteObject => ({ kind: 'neighbour', index: 103, ip: to, mac: lladdr }));
  const fdb = fc
    .tuple(mac, fc.constantFrom(...near).map(parseIp))
    .map(([lladdr, remote]): RouteObject => ({ kind: 'fdb', index: 103, mac: lladdr, remote }));
  const object = fc.oneof(own, byGateway, byDevice, inside, fdb, ...(family === 'IPv4' ? [byNexthop, byNexthop] : []));
  const operation = fc.record({
    action: fc.constantFrom('add' as const, 'add' as const, 'replace' as const, 'delete' as const),
    object,
  });
  const meddle = fc.record({
    meddle: fc.constantFrom('down' as const, 'up' as const),
    link: fc.constantFrom('eth0' as const, 'nodeplane' as const),
  });
  return fc.oneof({ weight: 9, arbitrary: operation }, { weight: 1, arbitrary: meddle });
}

interface World {
  readonly kernel: RouteKernel;
  set(link: string, state: 'up' | 'down'): void;
  end(): void;
}

function realWorld(family: IpFamily): World {
  const { uplink, own } = SAMPLES[family];
  const namespace = createNamespace('routes');
  const length = family === 'IPv4' ? 32 : 128;
  ip(namespace, [
    'link set lo up',
    'link add eth0 index 102 address 02:00:00:00:01:02 type veth peer name peer',
    'link set peer up',
    `link add nodeplane index 103 type vxlan id 1 dstport 8472 local ${uplink.replace(/\/.*/, '')} dev eth0 nolearning`,
    'link set eth0 addrgenmode none up',
    'link set nodeplane addrgenmode none up',
    `address add ${uplink} dev eth0 ${family === 'IPv6' ? 'nodad' : ''}`,
    `address add ${own}/${length} dev nodeplane ${family === 'IPv6' ? 'nodad' : ''}`,
  ]);
  namespace.run('sysctl', '-qw', 'net.ipv6.conf.all.keep_addr_on_down=1');
  const kernel = inNetns(namespace.path, () => NetlinkRouteKernel.open(family));
  return {
    kernel,
    set: (link, state) => ip(namespace, [`link set ${link} ${state}`]),
    end() {
      kernel.close();
      namespace.remove();
    },
  };
}

function fakeWorld(family: IpFamily): World {
  const { uplink, own } = SAMPLES[family];
  const kernel = new FakeRouteKernel(family);
  kernel.addLink({ name: 'eth0', index: 102, addresses: [uplink] });
  kernel.addLink({
    name: 'nodeplane',
    index: 103,
    kind: 'vxlan',
    addresses: [`${own}/${family === 'IPv4' ? 32 : 128}`],
  });
  return { kernel, set: (link, state) => kernel.changeLink(link, { up: state === 'up' }), end: () => {} };
}

/** What was refused, with the errno, and what is there in the end. */
async function run(world: World, sequence: readonly Step[]): Promise<string[]> {
  const said = sequence.map((step) => {
    if ('meddle' in step) {
      world.set(step.link, step.meddle);
      return `${step.link} ${step.meddle}`;
    }
    const [error] = world.kernel.apply([step]);
    return `${step.action} ${textOf(step.object)}: ${error?.errnoName ?? 'done'}`;
  });
  const present = (await world.kernel.list(103)).map((object) => `${keyOf(object)}: ${textOf(object)}`);
  world.end();
  return [...said, ...present.sort()];
}

it.each(['IPv4', 'IPv6'] as const)(
  'refuses and does what the kernel does, whatever is asked (%s)',
  async (family) => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps(family), { minLength: 5, maxLength: 40 }), async (sequence) => {
        expect(await run(fakeWorld(family), sequence)).toEqual(await run(realWorld(family), sequence));
      }),
      { numRuns: 50, endOnFailure: process.env.SHRINK === undefined },
    );
  },
  patient(300_000),
);
