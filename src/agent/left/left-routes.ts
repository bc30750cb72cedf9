import { IP_FAMILIES } from '../../core/index.ts';
import { closing } from '../../netlink/index.ts';
import { Nftables } from '../../netlink/nftables/index.ts';
import { hasRules, NetlinkRouteKernel, RTPROT_NODEPLANE, RULES_TABLE, routesPresent } from '../../routes/index.ts';
import type { PartContext } from '../part.ts';
import { LeftBehind } from './left-behind.ts';

/** Removes them, and nothing else: an agent may run. */
export const REMOVE_LEFT_ROUTES = 'nodeplane cleanup --routes-only';

/** Of an agent without --routes: what one with --routes has left. Packets follow it. */
export function leftRoutes({ config, clock, logger }: Pick<PartContext, 'config' | 'clock' | 'logger'>): LeftBehind {
  return new LeftBehind({
    clock,
    logger,
    isOurWork: config.routes !== undefined,
    look: lookAtRoutes,
    remedy: REMOVE_LEFT_ROUTES,
    words: {
      lookFails: 'Routes of an agent with --routes cannot be looked for',
      found: 'Routes of an agent with --routes are still here, and nobody keeps them right',
      gone: 'The routes of an agent with --routes are gone',
    },
  });
}

/** @throws rejects with KernelError, ERR_NETLINK_SOCKET */
async function lookAtRoutes(): Promise<string> {
  const found: string[] = [];
  const devices = new Set<string>();
  for (const family of IP_FAMILIES) {
    const present = await closing(NetlinkRouteKernel.open(family), (kernel) => routesPresent(kernel, family));
    if (present.routes > 0) found.push(`${present.routes} ${family} routes (proto ${RTPROT_NODEPLANE})`);
    // That of WireGuard is of both families.
    for (const name of present.devices) devices.add(name);
  }
  for (const name of devices) found.push(`device ${name}`);
  const { family, name } = RULES_TABLE;
  if (closing(Nftables.open(), hasRules)) found.push(`nftables table ${family} ${name}`);
  return found.join(', ');
}
