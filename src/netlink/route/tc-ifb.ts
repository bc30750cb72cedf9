import { encodeBody } from '../attribute-set.ts';
import type { NetlinkRequest } from '../message.ts';
import { IFF_UP } from '../uapi/if.ts';
import { IFLA } from '../uapi/if-link.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from '../uapi/netlink.ts';
import { ifinfomsg, RTM_NEWLINK } from '../uapi/rtnetlink.ts';

/** An intermediate functional block to make. */
export interface IfbSpec {
  /** At most 15 bytes. */
  readonly name: string;
  readonly mtu: number;
}

/**
 * Makes, and switches on, a device that gives what is redirected to it back to where it came from, after its own root
 * qdisc: so that received packets can be queued, which the kernel does only with packets that leave.
 */
export function newIfb({ name, mtu }: IfbSpec): NetlinkRequest {
  return {
    type: RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    operation: 'RTM_NEWLINK',
    object: `ifb "${name}"`,
    payload: encodeBody(ifinfomsg, { ifi_flags: IFF_UP, ifi_change: IFF_UP }, IFLA, {
      IFLA_MTU: mtu,
      IFLA_IFNAME: name,
      IFLA_LINKINFO: { IFLA_INFO_KIND: 'ifb' },
    }),
  };
}
