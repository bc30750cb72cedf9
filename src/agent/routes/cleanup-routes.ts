import { closing } from '../../netlink/index.ts';
import { NetlinkRouteKernel, removeRoutes } from '../../routes/index.ts';

/**
 * Removes the routes to other nodes' pods that nodeplane made. Pods on other nodes cannot be reached from here then, until
 * somebody else has made routes.
 *
 * @returns one sentence for each family
 * @throws ERR_CLEANUP, KernelError
 */
export function cleanupRoutes(): string[] {
  return (['IPv4', 'IPv6'] as const).map((family) => {
    const removed = closing(NetlinkRouteKernel.open(family), (kernel) => removeRoutes(kernel, family));
    return `routes to other nodes (${family}): ${removed === 0 ? 'clean' : `${removed} objects removed`}`;
  });
}
