import { linkFinder, reclaim } from '../../../cni/index.ts';
import { errorText } from '../../../core/index.ts';
import {
  type Collected,
  hasGone,
  hasLost,
  journaledNetworks,
  type Restored,
  restoreReservations,
} from '../../../ipam/index.ts';
import { withNetlink } from '../../../netlink/index.ts';
import { NETLINK_ROUTE } from '../../../netlink/uapi/index.ts';

/** What a collection did on this node. */
export interface ReclaimReport {
  readonly collected: readonly (Collected & { readonly network: string })[];
  /** Reservations of pods that stand, which were removed or damaged and are there again. */
  readonly restored: readonly (Restored & { readonly network: string })[];
  /** Sentences about what could not be collected. */
  readonly failures: readonly string[];
}

/**
 * Whether `reclaimNode` would find something in directories of reservations. Changes nothing and waits for nobody.
 *
 * @throws ERR_IPAM_STORE; errors of netlink
 */
export function hasReclaimable(dataDirs: readonly string[]): boolean {
  return withNetlink(NETLINK_ROUTE, (host) =>
    locationsIn(dataDirs).some(
      (location) => hasGone(location, linkFinder(host)) || hasLost(location, linkFinder(host)),
    ),
  );
}

/**
 * Takes away what pods of all networks left that are gone without a DEL (`reclaim`), and reserves anew what those that stand
 * have lost. A network that cannot be collected does not keep the others from it.
 */
export async function reclaimNode(dataDirs: readonly string[]): Promise<ReclaimReport> {
  const collected: (Collected & { readonly network: string })[] = [];
  const restored: (Restored & { readonly network: string })[] = [];
  const failures: string[] = [];
  await withNetlink(NETLINK_ROUTE, async (host) => {
    for (const location of locationsIn(dataDirs)) {
      const { network } = location;
      try {
        const gone = await reclaim(location, host, (message) => void failures.push(message));
        collected.push(...gone.map((one) => ({ ...one, network })));
        restored.push(...restoreReservations(location, linkFinder(host)).map((one) => ({ ...one, network })));
      } catch (error) {
        failures.push(`Cannot collect what pods of network "${network}" left: ${errorText(error)}`);
      }
    }
  });
  return { collected, restored, failures };
}

function locationsIn(dataDirs: readonly string[]): { readonly dataDir: string; readonly network: string }[] {
  return dataDirs.flatMap((dataDir) => journaledNetworks(dataDir).map((network) => ({ dataDir, network })));
}
