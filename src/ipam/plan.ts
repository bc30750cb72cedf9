import { type IpAddress, ipEquals } from '../core/index.ts';
import { AddressSet, type Allocation, nextFreeAddress, rangeOf } from './allocator.ts';
import type { StoredReservation } from './directory.ts';
import type { RangeSet } from './range.ts';
import { type Owner, ownershipOf } from './record.ts';

/** What is known when addresses are chosen. */
export interface ReservationState {
  readonly stored: readonly StoredReservation[];
  /** By number of the set. */
  readonly lastReserved: readonly (IpAddress | undefined)[];
  /** Addresses that must not be handed out although no file says so. */
  readonly excluded: readonly IpAddress[];
}

/** One address of the outcome. */
export interface PlannedReservation extends Allocation {
  /** The number of the set it comes from. */
  readonly set: number;
  /** False when the owner holds it already, from an attempt that did not finish. */
  readonly fresh: boolean;
}

/**
 * Chooses one address per set for an owner, all or none. An address the owner already holds is used again: it was
 * reserved by an attempt that ended half-way, and taking another would leak it.
 *
 * @throws ERR_IPAM_EXHAUSTED
 */
export function planReservations(
  sets: readonly RangeSet[],
  { stored, lastReserved, excluded }: ReservationState,
  owner: Owner,
): PlannedReservation[] {
  const held = stored.filter(({ content }) => ownershipOf(content, owner) === 'interface');
  const taken = new AddressSet([...stored.map(({ address }) => address), ...excluded]);
  return sets.map((rangeSet, set) => {
    for (const { address } of held) {
      const range = rangeOf(rangeSet, address);
      // A gateway can be held only if it was configured differently when the reservation was made.
      if (range && !rangeSet.some(({ gateway }) => ipEquals(gateway, address))) {
        return { address, range, set, fresh: false };
      }
    }
    return { ...nextFreeAddress(rangeSet, { lastReserved: lastReserved[set], taken }), set, fresh: true };
  });
}
