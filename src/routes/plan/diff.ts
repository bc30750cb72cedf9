import { keyOf, type RouteObject, type RouteOperation, textOf } from '../kernel/route-object.ts';

/** What others refer to comes before those that do. */
const ORDER: readonly RouteObject['kind'][] = ['neighbour', 'fdb', 'nexthop', 'route'];

/**
 * What to do so that the kernel holds `wanted` in place of `present`.
 *
 * First everything that is missing or different, then what is too much, so that a destination that is in both is never without
 * its route. Of two present objects with one key (others can give a MAC address a second destination) those that are not
 * wanted go first: replacing would leave one of them.
 */
export function diffObjects(present: Iterable<RouteObject>, wanted: Iterable<RouteObject>): RouteOperation[] {
  const wantedByKey = new Map<string, { readonly object: RouteObject; readonly text: string }>();
  for (const object of wanted) wantedByKey.set(keyOf(object), { object, text: textOf(object) });
  const presentByKey = groupByKey(present);
  const first: RouteOperation[] = [];
  const needed: RouteOperation[] = [];
  const last: RouteOperation[] = [];
  for (const [key, { object, text }] of wantedByKey) {
    const found = presentByKey.get(key) ?? [];
    const others = found.filter((one) => textOf(one) !== text);
    const isThere = others.length < found.length;
    if (!isThere && others.length === 1 && canReplace(others[0]!, object)) {
      needed.push({ action: 'replace', object });
      continue;
    }
    for (const other of others) first.push({ action: 'delete', object: other });
    if (!isThere) needed.push({ action: 'add', object });
  }
  for (const [key, objects] of presentByKey) {
    if (wantedByKey.has(key)) continue;
    for (const object of objects) last.push({ action: 'delete', object });
  }
  return [...first, ...needed.sort(byOrder), ...last.sort((a, b) => byOrder(b, a))];
}

/**
 * IPv6 refuses a gateway, also one that is to count as on the link, while a route leads to it through another link
 * (ip6_route_check_nh_onlink). The gateway inside the tunnel lies in the range whose route is to change.
 */
function canReplace(present: RouteObject, wanted: RouteObject): boolean {
  if (wanted.kind !== 'route' || wanted.way !== 'gateway' || wanted.gateway.family === 'IPv4') return true;
  return (
    !wanted.onlink ||
    (present.kind === 'route' && present.way === 'gateway' && present.outInterface === wanted.outInterface)
  );
}

function groupByKey(objects: Iterable<RouteObject>): ReadonlyMap<string, readonly RouteObject[]> {
  const groups = new Map<string, RouteObject[]>();
  for (const object of objects) {
    const key = keyOf(object);
    const group = groups.get(key);
    if (group) group.push(object);
    else groups.set(key, [object]);
  }
  return groups;
}

function byOrder(a: RouteOperation, b: RouteOperation): number {
  return ORDER.indexOf(a.object.kind) - ORDER.indexOf(b.object.kind);
}
