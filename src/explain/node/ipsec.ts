import { isUnsupported } from '../../core/index.ts';
import { withNetlink } from '../../netlink/index.ts';
import { NETLINK_XFRM } from '../../netlink/uapi/xfrm.ts';
import { blocksWithoutPolicy, type IpsecPolicy, listIpsecPolicies } from '../../netlink/xfrm/index.ts';

/** What IPsec does in a namespace. */
export interface Ipsec {
  readonly policies: readonly IpsecPolicy[];
  /** It blocks packets that no policy is for. */
  readonly blocksOthers: boolean;
}

/** That of the calling thread's namespace; undefined: it cannot be read. */
export function ipsecHere(): Ipsec | undefined {
  try {
    return withNetlink(NETLINK_XFRM, (netlink) => {
      return { policies: listIpsecPolicies(netlink), blocksOthers: blocksWithoutPolicy(netlink) };
    });
  } catch (error) {
    return isUnsupported(error) ? { policies: [], blocksOthers: false } : undefined;
  }
}
