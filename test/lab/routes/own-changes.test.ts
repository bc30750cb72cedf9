import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { type IpFamily, parseIp } from '../../../src/core/index.ts';
import { NetlinkRouteKernel, type RouteObject, type RouteOperation } from '../../../src/routes/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { ip } from '../wire.ts';

afterAll(removeAll);

const TUNNEL = 103;

// The kernel says who made a route or added a neighbour, and of a deleted neighbour nothing.
it.each<[IpFamily, string, string]>([
  ['IPv4', '10.0.0.1', '10.244.%.0'],
  ['IPv6', 'fd00::1', 'fd00:10:244:%::'],
])('what we delete ourselves is no disturbance, what others delete is (%s)', async (family, own, inner) => {
  const namespace = createNamespace('own-changes');
  ip(namespace, [
    'link set lo up',
    `link add nodeplane index ${TUNNEL} type vxlan id 1 dstport 8472 local ${own} nolearning`,
    'link set nodeplane addrgenmode none up',
  ]);
  const kernel = inNetns(namespace.path, () => NetlinkRouteKernel.open(family));
  let changes = 0;
  const watch = inNetns(namespace.path, () => kernel.watch(() => changes++));
  await kernel.list(TUNNEL);
  const neighbour = (n: number): RouteObject => {
    return {
      kind: 'neighbour',
      index: TUNNEL,
      ip: parseIp(inner.replace('%', String(n))),
      mac: Uint8Array.of(2, 0, 0, 0, 0, n),
    };
  };
  const all = Array.from({ length: 100 }, (_, n) => neighbour(n + 2));
  const apply = (action: RouteOperation['action'], objects: readonly RouteObject[]) =>
    kernel.apply(objects.map((object) => ({ action, object })));
  apply('add', all);
  apply('delete', all.slice(1));
  await delay(100);
  expect(changes).toBe(0);
  ip(namespace, [`neigh del ${inner.replace('%', '2')} dev nodeplane`]);
  await expect.poll(() => changes).toBe(1);
  // Also when it was told at the same time.
  apply('add', all);
  ip(namespace, [`neigh del ${inner.replace('%', '2')} dev nodeplane`]);
  apply('delete', all.slice(1));
  await expect.poll(() => changes).toBe(2);
  watch.close();
  kernel.close();
  namespace.remove();
});
