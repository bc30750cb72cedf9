import { compareText } from '../../core/index.ts';

/** What a Service port wants in the kernel, where there is room for one. */
export interface PortClaim {
  /** Key of the Service port. */
  readonly owner: string;
}

/**
 * The order in which dataplanes keep the claims of several Service ports to one place in the kernel: the first has it,
 * whoever came first.
 *
 * Who has a destination is not decided by it: a plan gives each destination to one port (`DestinationOwners`). Two ports
 * claim it only while a delta that hands it on is half taken in; and the ports of a Service have its health check port in
 * common.
 */
export function byOwner(a: PortClaim, b: PortClaim): number {
  return compareText(a.owner, b.owner);
}
