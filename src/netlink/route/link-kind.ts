import { isUnsupported } from '../../core/index.ts';
import { encodeBody } from '../attribute-set.ts';
import type { Netlink } from '../netlink.ts';
import { IFLA } from '../uapi/if-link.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from '../uapi/netlink.ts';
import { ifinfomsg, RTM_NEWLINK } from '../uapi/rtnetlink.ts';

/** -1 as a signed number: no device has it (net/core/dev.c, dev_validate_mtu). */
const IMPOSSIBLE_MTU = 0xffff_ffff;

/**
 * Whether the kernel has links of a kind. It is asked for one that it must refuse (EINVAL) before it makes anything, so that
 * nobody ever sees a device; the module is loaded if there is one.
 *
 * @param kind `vxlan`, `wireguard`: IFLA_INFO_KIND
 * @throws KernelError, EPERM without CAP_NET_ADMIN
 */
export function hasLinkKind(netlink: Netlink, kind: string): boolean {
  const [refusal] = netlink.attempt([
    {
      type: RTM_NEWLINK,
      flags: NLM_F_CREATE | NLM_F_EXCL,
      operation: 'RTM_NEWLINK',
      object: `a ${kind} that cannot be made`,
      payload: encodeBody(ifinfomsg, {}, IFLA, { IFLA_MTU: IMPOSSIBLE_MTU, IFLA_LINKINFO: { IFLA_INFO_KIND: kind } }),
    },
  ]);
  if (refusal?.errnoName === 'EINVAL') return true;
  if (isUnsupported(refusal)) return false;
  if (refusal) throw refusal;
  throw new Error(`the kernel made a ${kind} with an MTU of -1`);
}
