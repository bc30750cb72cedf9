import { formatIp, type IpAddress } from '../../core/index.ts';
import { FIRST_NEXTHOP_ID, NEXTHOP_IDS, type RouteObject } from '../kernel/route-object.ts';

/**
 * Which nexthop object is whose. A peer keeps its number as long as it is there, and over a restart as long as its gateway is
 * the same: what its routes refer to need not be touched then.
 */
export class NexthopIds {
  readonly #ids = new Map<string, number>();
  readonly #used = new NumberSet();
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

  /** The number of a peer's nexthop object; undefined when all are in use. */
  of(name: string, gateway: IpAddress): number | undefined {
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    const id = this.#adopted(gateway) ?? this.#free();
    if (id === undefined) return undefined;
    this.#ids.set(name, id);
    this.#used.add(id);
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

  /** The peer is gone, and so is its object. */
  release(name: string): void {
    const id = this.#ids.get(name);
    if (id === undefined) return;
    this.#ids.delete(name);
    this.#used.delete(id);
  }

  /** Somebody else has the peer's number: it gets another one, and nobody gets this. */
  avoid(name: string): void {
    this.#ids.delete(name);
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
