import { join } from 'node:path';
import { holdNetwork, waitsForReservations } from '../lab/cni/lock-holder.ts';
import type { CniRuntime } from './plugins.ts';
import { processesByMounts } from './remains.ts';

/**
 * Keeps each ADD at its reservation, and each DEL, whose link is gone by then, at giving back; until the function it returns
 * is called. The network must have had a pod.
 */
export function holdRecords({ enclosure }: CniRuntime): Promise<() => void> {
  return holdNetwork(join(enclosure.folder, 'var-lib/cni/networks/nodeplane'));
}

/** Whether a request is kept there. */
export function isRequestHeld({ enclosure }: CniRuntime): boolean {
  return processesByMounts((mounts) => mounts.includes(enclosure.folder)).some((pid) => {
    try {
      return waitsForReservations(pid);
    } catch {
      return false; // ended meanwhile
    }
  });
}
