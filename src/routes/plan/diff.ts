import { atOnce, type Steps } from '../../core/index.ts';
import { keyOf, type RouteObject, type RouteOperation, sameObject } from '../kernel/route-object.ts';

/** What others refer to comes before those that do. */
const ORDER: readonly RouteObject['kind'][] = ['neighbour', 'fdb', 'nexthop', 'route'];

/**
 * What to do so that the kernel holds `wanted` in place of `present`, in the order in which it is to be done.
 *
 * First everything that is missing or different, then what is too much, so that a destination that is in both is never without
 * its route. Of two present objects with one key (others can give a MAC address a second destination) those that are not
 * wanted go right before: replacing would leave one of them.
 */
export function diffObjects(present: Iterable<RouteObject>, wanted: Iterable<RouteObject>): RouteOperation[] {
  return atOnce(diffSteps(present, wanted));
}

/** As `diffObjects`, for thousands of objects. */
export function* diffSteps(present: Iterable<RouteObject>, wanted: Iterable<RouteObject>): Steps<RouteOperation[]> {
  const wantedByKey = new Map<string, RouteObject>();
  for (const object of wanted) {
    wantedByKey.set(keyOf(object), object);
    yield;
  }
  const there = new Set<string>();
  const others = new Map<string, RouteObject[]>();
  const last = new Stages();
  for (const object of present) {
    const key = keyOf(object);
    const same = wantedByKey.get(key);
    if (!same) last.push({ action: 'delete', object });
    else if (sameObject(object, same)) there.add(key);
    else others.set(key, [...(others.get(key) ?? []), object]);
    yield;
  }
  const needed = new Stages();
  for (const [key, object] of wantedByKey) {
    const found = others.get(key) ?? [];
    const isThere = there.has(key);
    if (!isThere && found.length === 1 && canReplace(found[0]!, object)) needed.push({ action: 'replace', object });
    else {
      // A delete and its add lie side by side: a destination is without its route for no longer than the two take.
      for (const other of found) needed.push({ action: 'delete', object: other });
      if (!isThere) needed.push({ action: 'add', object });
    }
    yield;
  }
  return [...needed.inOrder(ORDER), ...last.inOrder(ORDER.toReversed())];
}

/** Operations by the kind of their objects. */
class Stages {
  readonly #byKind: Readonly<Record<RouteObject['kind'], RouteOperation[]>> = {
    neighbour: [],
    fdb: [],
    nexthop: [],
    route: [],
  };

  push(operation: RouteOperation): void {
    this.#byKind[operation.object.kind].push(operation);
  }

  inOrder(kinds: readonly RouteObject['kind'][]): RouteOperation[] {
    return kinds.flatMap((kind) => this.#byKind[kind]);
  }
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
