import { type AttributeValues, encodeBody } from '../attribute-set.ts';
import type { NetlinkRequest } from '../message.ts';
import { IPSET_ATTRIBUTES, IPSET_CMD, IPSET_PROTOCOL, NFNL_SUBSYS_IPSET } from '../uapi/ip-set.ts';
import { NFNETLINK_V0, nfgenmsg, nfnlType } from '../uapi/nfnetlink.ts';
import { AF_INET } from '../uapi/rtnetlink.ts';
import { IPSET_ERRORS } from './errors.ts';

/** A message of the ipset subsystem. */
export function ipsetRequest(
  operation: keyof typeof IPSET_CMD,
  object: string,
  attributes: AttributeValues<(typeof IPSET_ATTRIBUTES)['declarations']>,
  flags = 0,
): NetlinkRequest {
  return {
    type: nfnlType(NFNL_SUBSYS_IPSET, IPSET_CMD[operation]),
    flags,
    operation,
    object,
    ownErrors: IPSET_ERRORS,
    payload: encodeBody(nfgenmsg, { nfgen_family: AF_INET, version: NFNETLINK_V0 }, IPSET_ATTRIBUTES, {
      IPSET_ATTR_PROTOCOL: IPSET_PROTOCOL,
      ...attributes,
    }),
  };
}
