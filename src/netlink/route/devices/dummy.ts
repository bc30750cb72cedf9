import { encodeBody } from '../../attribute-set.ts';
import type { NetlinkRequest } from '../../message.ts';
import { IFLA } from '../../uapi/if-link.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from '../../uapi/netlink.ts';
import { ifinfomsg, RTM_NEWLINK } from '../../uapi/rtnetlink.ts';

/**
 * Makes a device that swallows what is sent to it, switched off: a place for addresses. EEXIST when the name is taken;
 * EOPNOTSUPP (`isUnsupported`) on a kernel without the module dummy.
 *
 * @param name at most 15 bytes
 */
export function newDummy(name: string): NetlinkRequest {
  return {
    type: RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    operation: 'RTM_NEWLINK',
    object: `dummy "${name}"`,
    payload: encodeBody(ifinfomsg, {}, IFLA, { IFLA_IFNAME: name, IFLA_LINKINFO: { IFLA_INFO_KIND: 'dummy' } }),
  };
}
