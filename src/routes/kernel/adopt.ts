import { formatCidr, ipEquals, isExists, type KernelError } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { listNexthops, listRoutes } from '../../netlink/route/index.ts';
import { RT_TABLE_MAIN, RTN_UNICAST, RTPROT_BOOT } from '../../netlink/uapi/index.ts';
import { type Hop, IPV6_METRIC, type RouteOperation } from './route-object.ts';

/**
 * Of routes that were refused because somebody else has the same: those to be put in the other's place, since it leads to the
 * same node by the same link. flannel's host-gw leaves such ones, of protocol boot as an administrator's, who loses nothing
 * either. What leads elsewhere stays.
 *
 * @param refused why each of the operations was refused; undefined: it was not
 * @returns by the index of the operation that was refused
 * @throws KernelError
 */
export function adoptions(
  netlink: Netlink,
  operations: readonly RouteOperation[],
  refused: readonly (KernelError | undefined)[],
): ReadonlyMap<number, RouteOperation> {
  const adopted = new Map<number, RouteOperation>();
  if (!refused.some(isExists)) return adopted;
  const wanted = [...operations.entries()].flatMap(([index, { action, object }]) => {
    const isTaken = action === 'add' && object.kind === 'route' && isExists(refused[index]);
    return isTaken && (object.way === 'nexthop' || object.way === 'gateway') ? [{ index, object }] : [];
  });
  if (wanted.length === 0) return adopted;
  const { family } = wanted[0]!.object.destination.address;
  const theirs = new Map(
    listRoutes(netlink, { family, table: RT_TABLE_MAIN, protocol: RTPROT_BOOT })
      .filter(({ type, priority }) => type === RTN_UNICAST && priority === (family === 'IPv4' ? 0 : IPV6_METRIC))
      .map((route) => [formatCidr(route.destination), route]),
  );
  const nexthops = theirs.size > 0 && wanted.some(({ object }) => object.way === 'nexthop');
  const hops = new Map(nexthops ? listNexthops(netlink, { family }).map((nexthop) => [nexthop.id, nexthop]) : []);
  for (const { index, object } of wanted) {
    const hop = object.way === 'nexthop' ? hops.get(object.id) : object;
    const found = theirs.get(formatCidr(object.destination));
    if (hop && found && leadsTo(found, hop)) adopted.set(index, { action: 'replace', object });
  }
  return adopted;
}

type Way = { readonly [K in keyof Pick<Hop, 'gateway' | 'outInterface'>]: Hop[K] | undefined };

function leadsTo(route: Way, hop: Way): boolean {
  if (!route.gateway || !hop.gateway) return false;
  return route.outInterface === hop.outInterface && ipEquals(route.gateway, hop.gateway);
}
