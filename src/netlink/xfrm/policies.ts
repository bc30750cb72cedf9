import { addressBits, type Cidr, type IpFamily, ipFromBytes, KernelError } from '../../core/index.ts';
import { ipFamilyOf } from '../address-family.ts';
import { encodeBody } from '../attribute-set.ts';
import type { Netlink } from '../netlink.ts';
import {
  XFRM_DADDR,
  XFRM_MSG_GETDEFAULT,
  XFRM_MSG_GETPOLICY,
  XFRM_MSG_GETSA,
  XFRM_POLICY_ALLOW,
  XFRM_SADDR,
  XFRM_USERPOLICY_BLOCK,
  XFRMA,
  xfrm_userpolicy_default,
  xfrm_userpolicy_id,
  xfrm_userpolicy_info,
  xfrm_usersa_id,
} from '../uapi/xfrm.ts';

/** What IPsec does with some packets: it wraps them, wants them wrapped, or blocks them. */
export interface IpsecPolicy {
  readonly family: IpFamily;
  readonly source: Cidr;
  readonly destination: Cidr;
  /** IPPROTO_*; 0 for all. */
  readonly protocol: number;
}

/**
 * The policies of the conversation's namespace, in all directions. Without those that let packets pass as they are, as there are for the
 * sockets of a daemon of IKE: xfrm_bundle_lookup wraps nothing and __xfrm_policy_check wants nothing by them (net/xfrm/xfrm_policy.c).
 *
 * @param netlink a conversation of protocol NETLINK_XFRM
 * @throws KernelError, ERR_NETLINK_DECODE
 */
export function listIpsecPolicies(netlink: Netlink): IpsecPolicy[] {
  return netlink
    .dump({
      type: XFRM_MSG_GETPOLICY,
      flags: 0,
      operation: 'XFRM_MSG_GETPOLICY',
      object: 'policies of IPsec',
      payload: encodeBody(xfrm_userpolicy_id, {}, XFRMA, {}),
    })
    .flatMap((payload) => decodePolicy(payload) ?? []);
}

/**
 * Whether the conversation's namespace has what wraps or unwraps packets (states, `ip xfrm state`).
 *
 * @param netlink a conversation of protocol NETLINK_XFRM
 * @throws KernelError
 */
export function hasIpsecStates(netlink: Netlink): boolean {
  const listing = {
    type: XFRM_MSG_GETSA,
    flags: 0,
    operation: 'XFRM_MSG_GETSA',
    object: 'states of IPsec',
    payload: encodeBody(xfrm_usersa_id, {}, XFRMA, {}),
  };
  return netlink.dumpBeginning(listing, 1).length > 0;
}

/**
 * Whether the conversation's namespace blocks packets that no policy is for, in any direction (ip xfrm policy setdefault).
 *
 * @param netlink a conversation of protocol NETLINK_XFRM
 * @throws KernelError, ERR_NETLINK_DECODE
 */
export function blocksWithoutPolicy(netlink: Netlink): boolean {
  try {
    const answer = netlink.query({
      type: XFRM_MSG_GETDEFAULT,
      flags: 0,
      operation: 'XFRM_MSG_GETDEFAULT',
      object: 'what IPsec does without a policy',
      payload: encodeBody(xfrm_userpolicy_default, {}, XFRMA, {}),
    });
    return Object.values(xfrm_userpolicy_default.decode(answer)).includes(XFRM_USERPOLICY_BLOCK);
  } catch (error) {
    // Before Linux 5.15 there is no such message, and no such block.
    if (error instanceof KernelError && error.errnoName === 'EINVAL') return false;
    throw error;
  }
}

/** Undefined: of another family, or it does nothing. */
function decodePolicy(payload: Uint8Array): IpsecPolicy | undefined {
  const { family: number, prefixlen_d, prefixlen_s, proto, action } = xfrm_userpolicy_info.decode(payload);
  const family = ipFamilyOf(number);
  if (!family) return undefined;
  const { XFRMA_TMPL: templates } = XFRMA.decode(payload, xfrm_userpolicy_info.size);
  if (action === XFRM_POLICY_ALLOW && templates === undefined) return undefined;
  const range = (offset: number, prefixLength: number): Cidr => {
    const address = ipFromBytes(payload.subarray(offset, offset + addressBits(family) / 8));
    return { address, prefixLength };
  };
  const [source, destination] = [range(XFRM_SADDR, prefixlen_s), range(XFRM_DADDR, prefixlen_d)];
  return { family, source, destination, protocol: proto };
}
