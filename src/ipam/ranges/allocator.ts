import {
  formatIp,
  type IpAddress,
  type IpFamily,
  type IpSpan,
  ipFromValue,
  ipValue,
  isWithin,
  NodeplaneError,
  spanContains,
  spanOfCidr,
} from '../../core/index.ts';
import { type AddressRange, formatRangeSet, type RangeSet } from './range.ts';

/** What decides which address comes next. */
export interface AllocationState {
  /** The address handed out last from this set; undefined, or outside the set, starts from the beginning. */
  readonly lastReserved: IpAddress | undefined;
  /** Addresses in use, and others that must not be handed out. */
  readonly taken: TakenAddresses;
  /** Parts of the ranges that the configuration keeps from being handed out. */
  readonly exclude?: readonly IpSpan[];
}

/** What the search for a free address asks. */
export interface TakenAddresses {
  hasValue(family: IpFamily, value: bigint): boolean;
  /** Called when there is no free address, for the error. */
  usage(family: IpFamily, predicate: (value: bigint) => boolean): Usage;
}

/** How many addresses are taken, and by what. */
export interface Usage {
  readonly inUse: number;
  /** Words for people; '' when nothing is known. */
  readonly by: string;
}

/** A set of addresses of both families, with lookup by number. */
export class AddressSet implements TakenAddresses {
  readonly #values = { IPv4: new Set<bigint>(), IPv6: new Set<bigint>() };

  constructor(addresses: Iterable<IpAddress> = []) {
    for (const ip of addresses) this.add(ip);
  }

  add(ip: IpAddress): void {
    this.#values[ip.family].add(ipValue(ip));
  }

  has(ip: IpAddress): boolean {
    return this.hasValue(ip.family, ipValue(ip));
  }

  hasValue(family: IpFamily, value: bigint): boolean {
    return this.#values[family].has(value);
  }

  usage(family: IpFamily, predicate: (value: bigint) => boolean): Usage {
    return { inUse: [...this.#values[family]].filter(predicate).length, by: '' };
  }
}

/** An address chosen from a range. */
export interface Allocation {
  readonly address: IpAddress;
  readonly range: AddressRange;
}

/**
 * The next free address of a set: the first after the one handed out last, going round over all ranges of the set. Round
 * robin rather than the lowest free address, because an address that was just released may still be in the ARP tables,
 * connection tables and DNS caches of others.
 *
 * Never chosen: gateways of the set, the network address, the IPv4 broadcast address. The cost grows with the number of
 * taken addresses that are met before the first free one, not with the size of the ranges.
 *
 * @throws ERR_IPAM_EXHAUSTED, its text beginning as host-local's does
 */
export function nextFreeAddress(set: RangeSet, state: AllocationState): Allocation {
  const { lastReserved, taken, exclude = [] } = state;
  const { family } = set[0];
  const unusable = unusableValues(set);
  const excluded = exclude.filter((span) => span.family === family);
  for (const { range, first, last } of searchOrder(set, lastReserved)) {
    for (let value = first; value <= last; value++) {
      const hole = excluded.find((span) => isWithin(span, value));
      // Over it in one step: a hole of IPv6 addresses has no end that could be reached one by one.
      if (hole) value = hole.last;
      else if (!unusable.has(value) && !taken.hasValue(family, value)) {
        return { address: ipFromValue(family, value), range };
      }
    }
  }
  throw exhausted(set, taken, unusable);
}

/** Whether an address is one that a set never hands out: a gateway, the network's or the broadcast address. */
export function isUnusable(set: RangeSet, ip: IpAddress): boolean {
  return unusableValues(set).has(ipValue(ip));
}

/** The range of the set that `ip` lies in. */
export function rangeOf(set: RangeSet, ip: IpAddress): AddressRange | undefined {
  return set.find(({ span }) => spanContains(span, ip));
}

interface Stretch {
  readonly range: AddressRange;
  readonly first: bigint;
  readonly last: bigint;
}

/** Every address of the set exactly once, as stretches, beginning behind `lastReserved`. */
function* searchOrder(set: RangeSet, lastReserved: IpAddress | undefined): Generator<Stretch> {
  const bounds = set.map((range) => ({
    range,
    first: range.span.first,
    last: range.span.last,
  }));
  const startRange = lastReserved && rangeOf(set, lastReserved);
  if (!lastReserved || !startRange) {
    yield* bounds;
    return;
  }
  const start = set.indexOf(startRange);
  const cursor = ipValue(lastReserved);
  yield { ...bounds[start]!, first: cursor + 1n };
  yield* bounds.slice(start + 1);
  yield* bounds.slice(0, start);
  yield { ...bounds[start]!, last: cursor };
}

function unusableValues(set: RangeSet): Set<bigint> {
  const values = new Set<bigint>();
  for (const { family, subnet, gateway } of set) {
    const block = spanOfCidr(subnet);
    values.add(block.first);
    if (family === 'IPv4') values.add(block.last);
    values.add(ipValue(gateway));
  }
  return values;
}

function exhausted(set: RangeSet, taken: TakenAddresses, unusable: ReadonlySet<bigint>): NodeplaneError {
  const { inUse, by } = taken.usage(
    set[0].family,
    (value) => !unusable.has(value) && set.some(({ span }) => isWithin(span, value)),
  );
  const ranges = formatRangeSet(set);
  const gateways = set.map((range) => formatIp(range.gateway)).join(', ');
  return new NodeplaneError(
    'ERR_IPAM_EXHAUSTED',
    `Cannot reserve an address: no IP addresses available in range set: ${ranges}, ${inUse} in use${by && ` (${by})`} and ${gateways} kept for the gateway; enlarge the range or look for leaked reservations`,
    { facts: { ranges, inUse } },
  );
}
