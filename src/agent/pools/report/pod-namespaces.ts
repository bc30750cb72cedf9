import { attempt } from '../../../core/index.ts';
import { withNetlink } from '../../../netlink/index.ts';
import { listAddresses } from '../../../netlink/route/index.ts';
import { NETLINK_ROUTE, RT_SCOPE_UNIVERSE } from '../../../netlink/uapi/index.ts';
import { inNetns, otherNetns } from '../../../sys/index.ts';
import type { AddressInUse } from './check-addresses.ts';

/**
 * The addresses of all network namespaces that can be seen from here but the calling thread's own; undefined: no other is seen,
 * as in a container that has neither /run/netns nor the processes of the host. What vanishes meanwhile is left out.
 */
export function addressesInNamespaces(): AddressInUse[] | undefined {
  const paths = otherNetns();
  if (paths.length === 0) return undefined;
  return paths.flatMap((netns) => {
    const addresses = attempt(() =>
      inNetns(netns, () => withNetlink(NETLINK_ROUTE, (socket) => listAddresses(socket))),
    );
    const global = (addresses ?? []).filter(({ scope }) => scope === RT_SCOPE_UNIVERSE);
    return global.map(({ address }) => ({ address, netns }));
  });
}
