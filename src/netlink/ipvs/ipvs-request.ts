import { type AttributeValues, encodeBody } from '../attribute-set.ts';
import type { NetlinkRequest } from '../message.ts';
import { genlmsghdr } from '../uapi/genetlink.ts';
import { IPVS_CMD, IPVS_CMD_ATTRIBUTES, IPVS_GENL_VERSION } from '../uapi/ip-vs.ts';

/** The message type of the family IPVS, from `resolveFamily`. */
export type IpvsFamily = number;

/** A message of the family IPVS. */
export function ipvsRequest(
  family: IpvsFamily,
  operation: keyof typeof IPVS_CMD,
  object: string,
  attributes: AttributeValues<(typeof IPVS_CMD_ATTRIBUTES)['declarations']>,
): NetlinkRequest {
  return {
    type: family,
    flags: 0,
    operation,
    object,
    payload: encodeBody(
      genlmsghdr,
      { cmd: IPVS_CMD[operation], version: IPVS_GENL_VERSION },
      IPVS_CMD_ATTRIBUTES,
      attributes,
    ),
  };
}
