import { keyOf, type RouteObject, type RouteOperation, sameObject } from '../kernel/route-object.ts';

/** What others refer to comes before those that do. */
const ORDER: readonly RouteObject['kind'][] = ['neighbour', 'fdb', 'nexthop', 'route'];

/** What to do so that the kernel holds `wanted` in place of `present`: see `ObjectDiff`. */
export function diffObjects(present: Iterable<RouteObject>, wanted: Iterable<RouteObject>): RouteOperation[] {
  const diff = new ObjectDiff();
  for (const object of present) diff.isThere(object);
  for (const object of wanted) diff.want(object);
  return diff.operations();
}

/**
 * Works out what to do so that the kernel holds what is wanted in place of what is there, in the order in which it is to be
 * done: told of what is there first, then of what is wanted, of which no two have one key.
 *
 * First everything that is missing or different, then what is too much, so that a destination that is in both is never without
 * its route. Of two present objects with one key (others can give a MAC address a second destination) those that are not
 * wanted go right before: replacing would leave one of them.
 */
export class ObjectDiff {
  /** By key, what is there and nobody has wanted yet. */
  readonly #present = new Map<string, RouteObject | RouteObject[]>();
  readonly #needed = new Stages();

  isThere(object: RouteObject): void {
    const key = keyOf(object);
    const others = this.#present.get(key);
    this.#present.set(key, others ? [others, object].flat() : object);
  }

  want(object: RouteObject): void {
    // Keys are texts: at a first start there is nothing to look up.
    const found = this.#present.size === 0 ? undefined : this.#take(keyOf(object));
    if (!found) {
      this.#needed.push({ action: 'add', object });
      return;
    }
    if (!Array.isArray(found) && sameObject(found, object)) return;
    const all = [found].flat();
    // A route is deleted whatever its gateway: of several with one key nobody knows which one goes.
    const isAmbiguous = object.kind === 'route' && all.length > 1;
    const wrong = isAmbiguous ? all : all.filter((other) => !sameObject(other, object));
    const isThere = wrong.length < all.length;
    if (!isThere && wrong.length === 1 && canReplace(wrong[0]!, object)) {
      this.#needed.push({ action: 'replace', object });
      return;
    }
    // A delete and its add lie side by side: a destination is without its route for no longer than the two take.
    for (const other of wrong) this.#needed.push({ action: 'delete', object: other });
    if (!isThere) this.#needed.push({ action: 'add', object });
  }

  operations(): RouteOperation[] {
    const needed = this.#needed.inOrder(ORDER);
    if (this.#present.size === 0) return needed;
    const last = new Stages();
    for (const left of this.#present.values()) {
      for (const object of [left].flat()) last.push({ action: 'delete', object });
    }
    return needed.concat(last.inOrder(ORDER.toReversed()));
  }

  #take(key: string): RouteObject | RouteObject[] | undefined {
    const found = this.#present.get(key);
    if (found) this.#present.delete(key);
    return found;
  }
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
    const none: RouteOperation[] = [];
    return none.concat(...kinds.map((kind) => this.#byKind[kind]));
  }
}

/**
 * What others added would stay, or be in the way (an FDB entry with a nexthop object keeps it).
 * IPv4 takes what it knows already with the same nexthop object for what replaces it, metrics of others included
 * (fib_find_info_nh). IPv6 refuses a gateway, also one that is to count as on the link, while a route leads to it through another link
 * (ip6_route_check_nh_onlink). The gateway inside the tunnel lies in the range whose route is to change.
 */
function canReplace(present: RouteObject, wanted: RouteObject): boolean {
  if (present.kind === 'route' && present.way === 'other') return false;
  if ('additions' in present && present.additions !== undefined) return false;
  if (wanted.kind !== 'route' || wanted.way !== 'gateway' || wanted.gateway.family === 'IPv4') return true;
  return (
    !wanted.onlink ||
    (present.kind === 'route' && present.way === 'gateway' && present.outInterface === wanted.outInterface)
  );
}
