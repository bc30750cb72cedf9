import { encodeBody } from '../attribute-set.ts';
import type { NetlinkRequest } from '../message.ts';
import { IFLA } from '../uapi/if-link.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from '../uapi/netlink.ts';
import { ifinfomsg, RTM_NEWLINK } from '../uapi/rtnetlink.ts';

/** A WireGuard device to make. */
export interface WireguardLinkSpec {
  /** At most 15 bytes. */
  readonly name: string;
  /** @default the kernel's (1420) */
  readonly mtu?: number | undefined;
}

/**
 * Makes a WireGuard device, switched off and without key or peers, over a conversation of protocol NETLINK_ROUTE. It sends and
 * receives in the namespace it was made in, wherever it is moved. EEXIST when the name is taken; EOPNOTSUPP (`isUnsupported`)
 * on a kernel without the module wireguard (Linux 5.6).
 */
export function newWireguardLink({ name, mtu }: WireguardLinkSpec): NetlinkRequest {
  return {
    type: RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    operation: 'RTM_NEWLINK',
    object: `WireGuard device "${name}"`,
    payload: encodeBody(ifinfomsg, {}, IFLA, {
      IFLA_MTU: mtu,
      IFLA_IFNAME: name,
      IFLA_LINKINFO: { IFLA_INFO_KIND: 'wireguard' },
    }),
  };
}
