import { type Cidr, type Clock, type IpFamily, ipValue, lowerBound, spanOfCidr } from '../../core/index.ts';
import { podCapacity, reservedAddresses } from '../../ipam/index.ts';
import type { BlockUse } from '../../pools/index.ts';

export interface AddressUseOptions {
  /** Directories of reservations. */
  readonly dataDirs: readonly string[];
  readonly clock: Clock;
  /** Told when the directories cannot be read, each time. */
  readonly failed: (error: unknown) => void;
}

/** A block may not be used for a minute before it is given back: what is so old is recent enough for that. */
const FRESH_MS = 1000;
const EMPTY: Readonly<Record<IpFamily, readonly bigint[]>> = { IPv4: [], IPv6: [] };

/**
 * Which addresses the pods of this node have, by the reservations on disk: the plugin, also without an agent, and other programs
 * write them. A look costs a listing of the directories, and holds for many ranges.
 */
export class AddressUse {
  readonly #options: AddressUseOptions;
  #values = EMPTY;
  #readAt = Number.NEGATIVE_INFINITY;
  #isKnown = false;

  constructor(options: AddressUseOptions) {
    this.#options = options;
  }

  /** The addresses of a range that pods have, and could get. */
  of(range: Cidr): BlockUse {
    this.#read();
    const capacity = podCapacity(range);
    // Never looked: neither to be given back nor a reason for another block.
    if (!this.#isKnown) return { used: 1, free: Math.max(0, capacity - 1) };
    const { family, first, last } = spanOfCidr(range);
    const values = this.#values[family];
    const used = countBelow(values, last + 1n) - countBelow(values, first);
    return { used, free: Math.max(0, capacity - used) };
  }

  /** The next look reads the directories again. */
  forget(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
  }

  #read(): void {
    const { dataDirs, clock, failed } = this.#options;
    if (clock.now() < this.#readAt + FRESH_MS) return;
    this.#readAt = clock.now();
    try {
      const addresses = dataDirs.flatMap(reservedAddresses);
      const of = (family: IpFamily) =>
        [...new Set(addresses.filter((ip) => ip.family === family).map(ipValue))].sort((a, b) => (a < b ? -1 : 1));
      this.#values = { IPv4: of('IPv4'), IPv6: of('IPv6') };
      this.#isKnown = true;
    } catch (error) {
      // What was read last stays in force.
      failed(error);
    }
  }
}

/** Of sorted numbers. */
function countBelow(values: readonly bigint[], limit: bigint): number {
  return lowerBound(values, (value) => value < limit);
}
