import { resolveFamily } from '../generic-family.ts';
import { Netlink } from '../netlink.ts';
import { NETLINK_GENERIC } from '../uapi/netlink.ts';
import { WG_GENL_NAME } from '../uapi/wireguard.ts';
import type { WireguardFamily } from './wireguard-request.ts';

/**
 * A conversation about the WireGuard devices of the calling thread's namespace (`inNetns` for another), which is the caller's
 * to close. NODEPLANE_NETLINK_DEBUG shows no keys of it.
 *
 * @throws KernelError ENOENT (`isNotFound`) on a kernel without the module wireguard; ERR_NETLINK_SOCKET
 */
export function openWireguard(): { readonly netlink: Netlink; readonly family: WireguardFamily } {
  const netlink = Netlink.open(NETLINK_GENERIC, { secret: true });
  try {
    return { netlink, family: resolveFamily(netlink, WG_GENL_NAME) };
  } catch (error) {
    netlink.close();
    throw error;
  }
}
