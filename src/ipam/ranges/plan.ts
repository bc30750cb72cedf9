import { formatIp, type IpAddress, type IpSpan, ipEquals, ipValue, NodeplaneError } from '../../core/index.ts';
import { type Allocation, isUnusable, nextFreeAddress, rangeOf, type TakenAddresses } from './allocator.ts';
import { formatRangeSet, type RangeSet } from './range.ts';

/** What is known when addresses are chosen. */
export interface ReservationState {
  /** Addresses the owner already holds, from an attempt that did not finish. */
  readonly held: readonly IpAddress[];
  /** By number of the set. */
  readonly lastReserved: readonly (IpAddress | undefined)[];
  readonly taken: TakenAddresses;
  /** Addresses the runtime asks for. */
  readonly requested?: readonly IpAddress[];
  /** Never handed out unless asked for. */
  readonly exclude?: readonly IpSpan[];
}

/** One address of the outcome. */
export interface PlannedReservation extends Allocation {
  /** The number of the set it comes from. */
  readonly set: number;
  /** False when the owner holds it already, from an attempt that did not finish. */
  readonly fresh: boolean;
}

/**
 * Chooses one address per set for an owner, all or none: the one asked for; else one the owner already holds, which was
 * reserved by an attempt that ended half-way and would leak if another were taken; else the next free one.
 *
 * @throws ERR_IPAM_EXHAUSTED; ERR_IPAM_REQUEST when an address asked for cannot be given
 */
export function planReservations(sets: readonly RangeSet[], state: ReservationState): PlannedReservation[] {
  const unmet = [...(state.requested ?? [])];
  const plan = sets.map((rangeSet, set) => {
    const position = unmet.findIndex((ip) => rangeOf(rangeSet, ip));
    if (position >= 0) return { ...requestedAddress(rangeSet, unmet.splice(position, 1)[0]!, state), set };
    const held = heldAddress(rangeSet, state.held);
    if (held) return { ...held, set, fresh: false };
    const lastReserved = state.lastReserved[set];
    const { taken, exclude = [] } = state;
    return { ...nextFreeAddress(rangeSet, { lastReserved, taken, exclude }), set, fresh: true };
  });
  if (unmet.length > 0) {
    const ranges = sets.map(formatRangeSet).join(' and ');
    throw refused(unmet[0]!, `it lies in no range that has an address left to give: ${ranges || 'there is none'}`);
  }
  return plan;
}

function heldAddress(set: RangeSet, held: readonly IpAddress[]): Allocation | undefined {
  for (const address of held) {
    const range = rangeOf(set, address);
    // A gateway can be held only if it was configured differently when the reservation was made.
    if (range && !isUnusable(set, address)) return { address, range };
  }
  return undefined;
}

function requestedAddress(
  set: RangeSet,
  address: IpAddress,
  { held, taken }: ReservationState,
): Allocation & { readonly fresh: boolean } {
  const range = rangeOf(set, address)!;
  if (isUnusable(set, address)) throw refused(address, 'it is the gateway of its range, or no address of a host');
  if (held.some((ip) => ipEquals(ip, address))) return { address, range, fresh: false };
  if (taken.hasValue(address.family, ipValue(address))) throw refused(address, 'it is in use');
  return { address, range, fresh: true };
}

function refused(address: IpAddress, reason: string): NodeplaneError {
  const text = formatIp(address);
  return new NodeplaneError('ERR_IPAM_REQUEST', `Cannot reserve the address asked for, ${text}: ${reason}`, {
    facts: { address: text },
  });
}
