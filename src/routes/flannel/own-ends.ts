import { type IpFamily, ipEquals, sameBytes } from '../../core/index.ts';
import { sameRanges } from '../plan/peer.ts';
import type { OwnEnd, RouteEvent } from '../sync/events.ts';

/**
 * How this node is reached, gathered from the routes of its families: what others are told has to be complete, since a
 * dual-stack flannel passes over a node that has told one family alone.
 */
export class OwnEnds {
  readonly #families: readonly IpFamily[];
  /** Undefined: the family has been tried, and has no routes (yet). */
  readonly #ends = new Map<IpFamily, OwnEnd | undefined>();

  /** @param families those that have routes, or will */
  constructor(families: readonly IpFamily[]) {
    this.#families = families;
  }

  /** Takes in what happened. Returns whether `ends` has another value now. */
  apply(event: RouteEvent): boolean {
    const { kind, family } = event;
    if (kind !== 'synced' && kind !== 'waiting' && kind !== 'syncFailed') return false;
    const known = this.#ends.get(family);
    const isNew = !this.#ends.has(family);
    // Routes of before a failure stay in force.
    const end = kind === 'synced' ? event.own : known;
    if (!isNew && (end === known || (end && known && isSame(end, known)))) return false;
    this.#ends.set(family, end);
    return this.ends !== undefined;
  }

  /** Those of the families that have routes; undefined: not every family has been tried, or none has. */
  get ends(): readonly OwnEnd[] | undefined {
    if (this.#families.some((family) => !this.#ends.has(family))) return undefined;
    const ends = this.#families.flatMap((family) => this.#ends.get(family) ?? []);
    return ends.length > 0 ? ends : undefined;
  }
}

function isSame(a: OwnEnd, b: OwnEnd): boolean {
  return a.mtu === b.mtu && ipEquals(a.address, b.address) && sameBytes(a.mac, b.mac) && sameRanges(a.ranges, b.ranges);
}
