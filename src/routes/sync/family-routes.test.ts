import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeRouteKernel } from '../../../test/fakes/routes/fake-route-kernel.ts';
import { numberedNode } from '../../../test/fakes/routes/node-objects.ts';
import type { IpFamily } from '../../core/index.ts';
import type { RouteMode } from '../plan/underlay.ts';
import type { RouteEvent } from './events.ts';
import { FamilyRoutes } from './family-routes.ts';

const OWN = numberedNode(1);

function world(mode: RouteMode, family: IpFamily = 'IPv4', options: { usesNexthops?: boolean } = {}) {
  const clock = new FakeClock();
  const kernel = new FakeRouteKernel(family, options);
  const uplink = family === 'IPv4' ? '10.0.0.1/24' : 'fd00::1/120';
  kernel.addLink({ name: 'eth0', addresses: [uplink] });
  const events: RouteEvent[] = [];
  const settings = { mode, vni: 1, port: 8472, mtu: undefined };
  const observe = (event: RouteEvent) => events.push(event);
  const routes = new FamilyRoutes({ family, nodeName: 'n1', settings, kernel, clock, observe });
  const leftOut = () => events.flatMap((event) => (event.kind === 'leftOut' ? [`${event.name}: ${event.reason}`] : []));
  const figures = () => events.flatMap((event) => (event.kind === 'synced' ? [event.figures] : [])).at(-1);
  return { clock, kernel, routes, events, leftOut, figures };
}

/** Not on the link of n1. */
const far = (number: number) => numberedNode(number, { ips: [`192.168.1.${number}`, `fd01::${number}`] });

describe('routes of one family', () => {
  it.each(['IPv4', 'IPv6'] as const)(
    'lead to nodes on the link and through the tunnel to others (%s)',
    async (family) => {
      const { clock, kernel, routes, figures } = world('auto', family);
      for (const node of [OWN, numberedNode(2), far(3)]) routes.nodeChanged(node);
      routes.start();
      await clock.advance(100);
      expect(kernel.print()).toMatchSnapshot();
      expect(figures()).toEqual({ peers: { direct: 1, tunnel: 1, wireguard: 0 }, wanted: 2, inKernel: 2, leftOut: 0 });
      expect(await routes.verify()).toEqual([]);
      await routes.stop();
    },
  );

  it('follow the node’s address to another link within a minute when nobody tells', async () => {
    const { clock, kernel, routes, events } = world('auto');
    for (const node of [OWN, numberedNode(2), far(3)]) routes.nodeChanged(node);
    const bridge = kernel.addLink({ name: 'br0' });
    routes.start();
    await clock.advance(100);
    kernel.moveAddresses('eth0', 'br0');
    expect(await routes.verify()).toMatchObject([{ object: 'interface to the other nodes', difference: 'changed' }]);
    await clock.advance(61_000);
    expect(events.flatMap((event) => (event.kind === 'driftFound' ? event.drifts : []))).toMatchObject([
      { ours: ['10.0.0.1 dev br0 (2) mtu 1500'], theirs: ['10.0.0.1 dev eth0 (1) mtu 1500'] },
    ]);
    expect(await routes.verify()).toEqual([]);
    const direct = (await kernel.list(undefined)).filter((object) => object.kind === 'nexthop' && !object.onlink);
    expect(direct).toMatchObject([{ outInterface: bridge }]);
    await routes.stop();
  });

  it('are the same without nexthop objects', async () => {
    const texts = [];
    for (const usesNexthops of [true, false]) {
      const { clock, kernel, routes } = world('auto', 'IPv4', { usesNexthops });
      for (const node of [OWN, numberedNode(2), far(3)]) routes.nodeChanged(node);
      routes.start();
      await clock.advance(100);
      texts.push(kernel.print());
      await routes.stop();
    }
    expect(texts[1]).toBe(texts[0]);
  });

  it('are not touched before this node’s own pod CIDR is known, and stay when its Node goes', async () => {
    const { clock, kernel, routes, events } = world('vxlan');
    const before = kernel.print();
    routes.nodeChanged(numberedNode(2));
    routes.start();
    await clock.advance(100);
    expect(kernel.print()).toBe(before);
    expect(events).toEqual([{ family: 'IPv4', kind: 'waiting', reason: 'there is no Node object "n1" yet' }]);
    routes.nodeChanged(numberedNode(1, { podCidrs: [] }));
    await clock.advance(100);
    expect(events.at(-1)).toMatchObject({ reason: 'this node has no pod CIDR of IPv4' });
    expect(routes.isUnused).toBe(true);
    routes.nodeChanged(OWN);
    await clock.advance(100);
    expect(routes.isUnused).toBe(false);
    const after = kernel.print();
    expect(after).toContain('nodeplane-v4');
    routes.nodeRemoved('n1');
    await clock.advance(100_000);
    expect(kernel.print()).toBe(after);
    await routes.stop();
  });

  it('cost the same requests for one more peer beside ten and beside a thousand', async () => {
    const cost = async (count: number) => {
      const { clock, kernel, routes, figures } = world('vxlan');
      routes.nodeChanged(OWN);
      for (let number = 2; number < count; number++) routes.nodeChanged(numberedNode(number));
      routes.start();
      await clock.advance(1000);
      // Between two slices the sync lets others run, in real time.
      await expect.poll(figures, { timeout: 20_000 }).toMatchObject({ inKernel: count - 2 });
      await clock.advance(1000);
      const before = kernel.requests;
      routes.nodeChanged(numberedNode(5555));
      routes.nodeChanged(numberedNode(2, { ips: ['10.9.9.9'] }));
      while (figures()?.inKernel !== count - 1) await clock.advance(100);
      await routes.stop();
      return kernel.requests - before;
    };
    expect([await cost(10), await cost(1000)]).toEqual([5, 5]);
  });

  it('of a changed address move to another nexthop object, and no range is without its route', async () => {
    const { clock, kernel, routes } = world('host-gw');
    for (const node of [OWN, numberedNode(2)]) routes.nodeChanged(node);
    routes.start();
    await clock.advance(100);
    const nexthops = async () => (await kernel.list(undefined)).filter(({ kind }) => kind === 'nexthop');
    const before = await nexthops();
    const done: string[] = [];
    const apply = kernel.apply.bind(kernel);
    kernel.apply = (operations) => {
      done.push(...operations.map(({ action, object: { kind } }) => `${action} ${kind}`));
      return apply(operations);
    };
    routes.nodeChanged(numberedNode(2, { ips: ['10.0.0.99'] }));
    await clock.advance(100);
    expect(done).toEqual(['add nexthop', 'replace route', 'delete nexthop']);
    expect(kernel.print()).toContain('via 10.0.0.99');
    const after = await nexthops();
    expect(after).toHaveLength(1);
    expect(after).not.toEqual(before);
    await routes.stop();
  });

  it('are taken over from the agent before, numbers and all', async () => {
    const { clock, kernel, routes } = world('auto');
    for (const node of [OWN, numberedNode(2), far(3)]) routes.nodeChanged(node);
    routes.start();
    await clock.advance(100);
    await routes.stop();
    const settings = { mode: 'auto', vni: 1, port: 8472, mtu: undefined } as const;
    const synced: RouteEvent[] = [];
    const next = new FamilyRoutes({
      family: 'IPv4',
      nodeName: 'n1',
      settings,
      kernel,
      clock,
      observe: (event) => synced.push(event),
    });
    for (const node of [OWN, far(3), numberedNode(2)]) next.nodeChanged(node);
    next.start();
    await clock.advance(100);
    expect(synced).toMatchObject([{ kind: 'mtuKnown' }, { kind: 'synced', operations: 0 }]);
    await next.stop();
  });

  it('say what pods’ packets may measure as soon as this Node is told, and again when that changes', async () => {
    const { clock, kernel, routes, events } = world('vxlan');
    const told = () => events.flatMap((event) => (event.kind === 'mtuKnown' ? [event.mtu] : []));
    expect(routes.mtu()).toBeUndefined();
    routes.nodeChanged(OWN);
    expect([routes.mtu(), told()]).toEqual([1450, []]);
    routes.start();
    await clock.advance(100);
    kernel.changeLink('eth0', { mtu: 1400 });
    await clock.advance(5000);
    expect([routes.mtu(), told()]).toEqual([1350, [1450, 1350]]);
    await routes.stop();
    const direct = world('host-gw');
    direct.routes.nodeChanged(OWN);
    expect(direct.routes.mtu()).toBe(1500);
  });

  it('tell since when each stands as it does: comparing all of them changes nothing', async () => {
    const { clock, kernel, routes } = world('auto');
    for (const node of [OWN, numberedNode(2), far(3)]) routes.nodeChanged(node);
    routes.start();
    await clock.advance(100);
    const since = (name: string) => routes.standings().get(name)?.changedAt;
    const before = since('n2');
    expect(before).toBe(since('n3'));
    await clock.advance(5000);
    kernel.changeLink('eth0', { mtu: 1400 });
    routes.nodeChanged(numberedNode(3, { ips: ['192.168.1.99', 'fd01::99'] }));
    await clock.advance(5000);
    expect(since('n2')).toBe(before);
    expect(since('n3')).toBeGreaterThan(before!);
    routes.nodeRemoved('n3');
    await clock.advance(100);
    expect([...routes.standings().keys()]).toEqual(['n2']);
    await routes.stop();
  });
});

describe('nodes that cannot be used', () => {
  it('are left out in words, and keep nobody from being reached', async () => {
    const { clock, kernel, routes, leftOut, figures } = world('host-gw');
    const nodes = [
      OWN,
      numberedNode(2, { year: 2020 }),
      numberedNode(3, { year: 2021, podCidrs: ['10.64.2.0/25'] }),
      numberedNode(4, { ips: ['10.0.0.2'] }),
      numberedNode(5, { ips: [] }),
      numberedNode(6, { podCidrs: ['10.64.0.0/22'] }),
      numberedNode(7, { podCidrs: ['10.0.0.0/24'] }),
      numberedNode(8, { podCidrs: ['10.96.1.0/24'] }),
      far(9),
      numberedNode(10),
    ];
    routes.serviceRangesChanged([
      { address: { family: 'IPv4', bytes: Uint8Array.of(10, 96, 0, 0) }, prefixLength: 12 },
    ]);
    for (const node of nodes) routes.nodeChanged(node);
    routes.start();
    await clock.advance(100);
    expect(leftOut().sort()).toMatchSnapshot();
    expect(figures()).toMatchObject({ peers: { direct: 2, tunnel: 0 }, leftOut: 7 });
    expect(kernel.print()).toContain('10.64.10.0/24 via 10.0.0.10');
    await routes.stop();
  });

  it('are told when they are in order again', async () => {
    const { clock, routes, leftOut } = world('host-gw');
    for (const node of [OWN, numberedNode(5, { ips: [] })]) routes.nodeChanged(node);
    routes.start();
    await clock.advance(100);
    routes.nodeChanged(numberedNode(5));
    await clock.advance(100);
    expect(leftOut()).toEqual(['n5: it has pods of IPv4 but no InternalIP of IPv4', 'n5: undefined']);
    await routes.stop();
  });
});

describe('what others do', () => {
  it('a route in the way is left alone; ours comes when it is gone', async () => {
    const { clock, kernel, routes, leftOut, figures } = world('host-gw');
    kernel.addForeignRoute('10.64.2.0/24');
    for (const node of [OWN, numberedNode(2), numberedNode(3)]) routes.nodeChanged(node);
    routes.start();
    await clock.advance(100);
    expect(leftOut()).toEqual([
      'n2: somebody else has 10.64.2.0/24 (ip route show 10.64.2.0/24); remove it if it is not needed',
    ]);
    expect(figures()).toMatchObject({ peers: { direct: 1 }, wanted: 2, inKernel: 1 });
    kernel.removeForeignRoute('10.64.2.0/24');
    await clock.advance(120_000);
    expect(figures()).toMatchObject({ peers: { direct: 2 }, wanted: 2, inKernel: 2, leftOut: 0 });
    await routes.stop();
  });

  it('is repaired at once, and not more often than once a second', async () => {
    const { clock, kernel, routes, events } = world('vxlan');
    for (const node of [OWN, numberedNode(2)]) routes.nodeChanged(node);
    routes.start();
    await clock.advance(2000);
    const good = kernel.print();
    for (let times = 0; times < 100; times++) {
      kernel.removeObject(times);
      await clock.advance(100);
    }
    await clock.advance(2000);
    expect(kernel.print()).toBe(good);
    expect(events.filter(({ kind }) => kind === 'disturbed').length).toBeLessThan(15);
    await routes.stop();
  });

  it('a network without a carrier is one reason for all peers, and they are back when it is', async () => {
    const { clock, kernel, routes, leftOut, figures } = world('host-gw');
    for (const node of [OWN, numberedNode(2), numberedNode(3)]) routes.nodeChanged(node);
    routes.start();
    await clock.advance(2000);
    kernel.changeLink('eth0', { up: false });
    await clock.advance(2000);
    const reason =
      'the interface that leads to it is down, or has no carrier; look for its cable, and its port on the switch';
    expect(leftOut()).toEqual([`n2: ${reason}`, `n3: ${reason}`]);
    expect(figures()).toMatchObject({ wanted: 2, inKernel: 0, leftOut: 2 });
    kernel.changeLink('eth0', { up: true });
    await clock.advance(2000);
    expect(leftOut().slice(2)).toEqual(['n2: undefined', 'n3: undefined']);
    expect(figures()).toMatchObject({ wanted: 2, inKernel: 2, leftOut: 0 });
    await routes.stop();
  });

  it('a device of our name that is not ours is an error in words', async () => {
    const { clock, kernel, routes, events } = world('vxlan');
    kernel.addLink({ name: 'nodeplane-v4', kind: 'dummy' });
    for (const node of [OWN, numberedNode(2)]) routes.nodeChanged(node);
    routes.start();
    await clock.advance(100);
    expect(events.at(-1)).toMatchObject({ kind: 'syncFailed' });
    expect(String((events.at(-1) as { error: unknown }).error)).toContain('a device of kind dummy of this name');
    kernel.deleteLink('nodeplane-v4');
    await clock.advance(5000);
    expect(events.at(-1)).toMatchObject({ kind: 'synced' });
    await routes.stop();
  });
});
