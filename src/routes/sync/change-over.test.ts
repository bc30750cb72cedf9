import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeRouteKernel } from '../../../test/fakes/routes/fake-route-kernel.ts';
import { numberedNode } from '../../../test/fakes/routes/node-objects.ts';
import type { IpFamily } from '../../core/index.ts';
import type { RouteMode } from '../plan/underlay.ts';
import { leavesTunnel } from './change-over.ts';
import { FamilyRoutes } from './family-routes.ts';

/** One node, on which agents of different modes follow each other. */
function machine(family: IpFamily) {
  const clock = new FakeClock();
  const kernel = new FakeRouteKernel(family);
  kernel.addLink({ name: 'eth0', addresses: [family === 'IPv4' ? '10.0.0.1/24' : 'fd00::1/120'] });
  const start = (mode: RouteMode): FamilyRoutes => {
    const settings = { mode, vni: 1, port: 8472, mtu: undefined };
    const routes = new FamilyRoutes({ family, nodeName: 'n1', settings, kernel, clock, observe: () => {} });
    for (const number of [1, 2, 3]) routes.nodeChanged(numberedNode(number));
    routes.start();
    return routes;
  };
  const tunnel = family === 'IPv4' ? 'nodeplane-v4' : 'nodeplane-v6';
  /** How many routes to pods leave by an interface. */
  const routesBy = (name: string) =>
    kernel.print().match(new RegExp(`^[\\da-f.:]+/\\d+ via .* dev ${name}`, 'gm'))?.length ?? 0;
  const hasTunnel = () => kernel.device(tunnel) !== undefined;
  const isLeft = (mode: RouteMode) => leavesTunnel(kernel, family, { mode });
  return { clock, kernel, start, tunnel, routesBy, hasTunnel, isLeft };
}

describe.each(['IPv4', 'IPv6'] as const)('a change of the way, %s', (family) => {
  it('to a tunnel that is new: this node receives by it at once, and sends by it a second later', async () => {
    const { clock, kernel, start, tunnel, routesBy } = machine(family);
    const before = start('host-gw');
    await clock.advance(100);
    await before.stop();
    const routes = start('vxlan');
    await clock.advance(900);
    expect(kernel.device(tunnel)?.up).toBe(true);
    expect(kernel.print().match(/^(neighbour|fdb) /gm)).toHaveLength(4);
    expect([routesBy('eth0'), routesBy(tunnel)]).toEqual([2, 0]);
    await clock.advance(200);
    expect([routesBy('eth0'), routesBy(tunnel)]).toEqual([0, 2]);
    expect(await routes.verify()).toEqual([]);
    await routes.stop();
  });

  it('to a tunnel waits for nobody where there are no routes yet, where it is there, or when the agent ends', async () => {
    const { clock, kernel, start, tunnel, routesBy } = machine(family);
    const first = start('vxlan');
    await clock.advance(100);
    expect(routesBy(tunnel)).toBe(2);
    await first.stop();
    await start('vxlan').stop();
    kernel.deleteLink(tunnel);
    const direct = start('host-gw');
    await clock.advance(100);
    await direct.stop();
    const ending = start('vxlan');
    await clock.advance(100);
    expect(routesBy('eth0')).toBe(2);
    await ending.stop();
    expect(routesBy(tunnel)).toBe(2);
  });

  it('after an agent was killed while it waited is completed by the next one', async () => {
    const { clock, start, tunnel, routesBy } = machine(family);
    const before = start('host-gw');
    await clock.advance(100);
    await before.stop();
    start('vxlan');
    await clock.advance(500);
    expect(routesBy('eth0')).toBe(2);
    const next = start('vxlan');
    await clock.advance(100);
    expect([routesBy('eth0'), routesBy(tunnel)]).toEqual([0, 2]);
    await next.stop();
  });

  it('from a tunnel: packets come in by it for ten seconds more, over a restart too', async () => {
    const { clock, start, routesBy, hasTunnel, isLeft } = machine(family);
    const tunnelled = start('vxlan');
    await clock.advance(100);
    expect(isLeft('vxlan')).toBe(false);
    await tunnelled.stop();
    const first = start('host-gw');
    expect(isLeft('host-gw')).toBe(true);
    await clock.advance(5000);
    expect([routesBy('eth0'), hasTunnel()]).toEqual([2, true]);
    // It is no drift.
    expect(await first.verify()).toEqual([]);
    await first.stop();
    const second = start('host-gw');
    await clock.advance(9900);
    expect(hasTunnel()).toBe(true);
    await clock.advance(200);
    expect([routesBy('eth0'), hasTunnel(), isLeft('host-gw')]).toEqual([2, false, false]);
    expect(await second.verify()).toEqual([]);
    await second.stop();
  });

  it('from a tunnel that is down, or that others delete: nothing is kept', async () => {
    const { clock, kernel, start, tunnel, hasTunnel } = machine(family);
    for (const disturb of [() => kernel.changeLink(tunnel, { up: false }), () => kernel.deleteLink(tunnel)]) {
      const before = start('vxlan');
      await clock.advance(100);
      await before.stop();
      disturb();
      const routes = start('host-gw');
      await clock.advance(100);
      expect(hasTunnel()).toBe(false);
      await routes.stop();
    }
  });
});
