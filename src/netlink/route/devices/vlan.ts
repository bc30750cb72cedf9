import { encodeBody, encodeNest } from '../../attribute-set.ts';
import type { NetlinkRequest } from '../../message.ts';
import { IFLA, IFLA_VLAN } from '../../uapi/if-link.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from '../../uapi/netlink.ts';
import { ifinfomsg, RTM_NEWLINK } from '../../uapi/rtnetlink.ts';

/** A link that sends and receives the frames of one VLAN through another. */
export interface VlanSpec {
  /** At most 15 bytes. */
  readonly name: string;
  /** Index of the link below, whose MAC and MTU it takes over, and with which it goes. */
  readonly link: number;
  /** 1 to 4094. */
  readonly id: number;
}

/**
 * Makes a VLAN link (802.1Q), switched off. EEXIST when the name or the VLAN is taken; EOPNOTSUPP (`isUnsupported`) on a
 * kernel without the module 8021q, which all have whose bridges look at VLANs.
 */
export function newVlan({ name, link, id }: VlanSpec): NetlinkRequest {
  return {
    type: RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    operation: 'RTM_NEWLINK',
    object: `VLAN ${id} of link ${link} "${name}"`,
    payload: encodeBody(ifinfomsg, {}, IFLA, {
      IFLA_LINK: link,
      IFLA_IFNAME: name,
      IFLA_LINKINFO: { IFLA_INFO_KIND: 'vlan', IFLA_INFO_DATA: encodeNest(IFLA_VLAN, { IFLA_VLAN_ID: id }) },
    }),
  };
}
