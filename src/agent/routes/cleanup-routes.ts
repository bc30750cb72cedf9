import { closing } from '../../netlink/index.ts';
import { NetlinkRouteKernel, removeRoutes } from '../../routes/index.ts';

/**
 * Removes the routes to other nodes' pods that nodeplane made. Pods on other nodes cannot be reached from here then, until
 * somebody else has made routes.
 *
 * @returns one sentence for each family
 * @throws rejects with ERR_CLEANUP, KernelError
 */
export async function cleanupRoutes(): Promise<string[]> {
  const lines: string[] = [];
  for (const family of ['IPv4', 'IPv6'] as const) {
    const removed = await closing(NetlinkRouteKernel.open(family), (kernel) => removeRoutes(kernel, family));
    lines.push(`routes to other nodes (${family}): ${removed === 0 ? 'clean' : `${removed} objects removed`}`);
  }
  return lines;
}
