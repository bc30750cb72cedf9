import { formatIp, type IpAddress } from '../../core/index.ts';
import { FIRST_NEXTHOP_ID, NEXTHOP_IDS, type RouteObject } from '../kernel/route-object.ts';

/**
 * Which numbers of nexthop objects are in use. A peer keeps its number as long as its gateway is the same, also over a restart:
 * what its routes refer to need not be touched then. Which one is whose is known by whoever asks.
 */
export class NexthopIds {
  readonly #used = new NumberSet();
  /** Those that somebody else has; they stay in use. */
  readonly #taken = new Set<number>();
  /** By gateway, those in the kernel that no peer has yet; and the same numbers. */
  readonly #unowned = new Map<string, number>();
  readonly #unownedIds = new Set<number>();
  #last = NEXTHOP_IDS - 1;

  /** What is in the kernel; numbers nobody has are given to the peers whose gateways they lead to. */
  adopt(present: readonly RouteObject[]): void {
    this.#unowned.clear();
    this.#unownedIds.clear();
    for (const object of present) {
      if (object.kind !== 'nexthop' || this.#used.has(object.id)) continue;
      this.#unowned.set(formatIp(object.gateway), object.id);
      this.#unownedIds.add(object.id);
    }
  }

  /**
   * The number of a peer's nexthop object; undefined when all are in use.
   *
   * @param known the one it has had until now, if any
   */
  of(known: number | undefined, gateway: IpAddress): number | undefined {
    if (known !== undefined && !this.#taken.has(known)) return known;
    const id = this.#adopted(gateway) ?? this.#free();
    if (id !== undefined) this.#used.add(id);
    return id;
  }

  #adopted(gateway: IpAddress): number | undefined {
    if (this.#unowned.size === 0) return undefined;
    const text = formatIp(gateway);
    const id = this.#unowned.get(text);
    if (id === undefined) return undefined;
    this.#unowned.delete(text);
    this.#unownedIds.delete(id);
    return id;
  }

  /** The peer is gone, and so is the object of its number, if it had one. */
  release(id: number | undefined): void {
    if (id !== undefined && !this.#taken.has(id)) this.#used.delete(id);
  }

  /** Somebody else has this number: whoever had it gets another one, and nobody gets this. */
  avoid(id: number): void {
    this.#taken.add(id);
  }

  /** The next one round the circle, so that a number is used again late. */
  #free(): number | undefined {
    if (this.#used.size + this.#unownedIds.size >= NEXTHOP_IDS) return undefined;
    let id: number;
    do {
      this.#last = (this.#last + 1) % NEXTHOP_IDS;
      id = FIRST_NEXTHOP_ID + this.#last;
    } while (this.#used.has(id) || this.#unownedIds.has(id));
    return id;
  }
}

/** Of the numbers a nexthop object may have, some. A bit for each takes less than a Set of those of a large cluster. */
class NumberSet {
  readonly #bits = new Uint8Array(NEXTHOP_IDS / 8);
  size = 0;

  has(id: number): boolean {
    const n = id - FIRST_NEXTHOP_ID;
    return n >= 0 && n < NEXTHOP_IDS && (this.#bits[n >> 3]! & (1 << (n & 7))) !== 0;
  }

  add(id: number): void {
    if (this.has(id)) return;
    this.#flip(id);
    this.size++;
  }

  delete(id: number): void {
    if (!this.has(id)) return;
    this.#flip(id);
    this.size--;
  }

  #flip(id: number): void {
    const n = id - FIRST_NEXTHOP_ID;
    this.#bits[n >> 3]! ^= 1 << (n & 7);
  }
}
