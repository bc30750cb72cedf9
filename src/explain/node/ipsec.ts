import { isUnsupported } from '../../core/index.ts';
import { withNetlink } from '../../netlink/index.ts';
import { NETLINK_XFRM } from '../../netlink/uapi/xfrm.ts';
import { blocksWithoutPolicy, hasIpsecStates, type IpsecPolicy, listIpsecPolicies } from '../../netlink/xfrm/index.ts';

/** What IPsec does in a namespace. */
export interface Ipsec {
  readonly policies: readonly IpsecPolicy[];
  /** It blocks packets that no policy is for. */
  readonly blocksOthers: boolean;
  /** It may unwrap packets that come in. */
  readonly hasStates: boolean;
}

/** That of the calling thread's namespace; undefined: it cannot be read. */
export function ipsecHere(): Ipsec | undefined {
  try {
    return withNetlink(NETLINK_XFRM, (netlink) => {
      return {
        policies: listIpsecPolicies(netlink),
        blocksOthers: blocksWithoutPolicy(netlink),
        hasStates: hasIpsecStates(netlink),
      };
    });
  } catch (error) {
    return isUnsupported(error) ? { policies: [], blocksOthers: false, hasStates: false } : undefined;
  }
}

/** Whether packets of the calling thread's namespace neither are wrapped by IPsec nor were, whatever they are. Read once. */
export function ipsecIdleHere(): () => boolean {
  let isIdle: boolean | undefined;
  return () => {
    if (isIdle === undefined) {
      const ipsec = ipsecHere();
      isIdle = ipsec?.policies.length === 0 && !ipsec.hasStates;
    }
    return isIdle;
  };
}
