import { type AttributeValues, encodeBody } from '../attribute-set.ts';
import type { NetlinkRequest } from '../message.ts';
import { genlmsghdr } from '../uapi/genetlink.ts';
import { WG_CMD, WG_GENL_VERSION, WGDEVICE } from '../uapi/wireguard.ts';

/** The message type of the family wireguard, from `resolveFamily`. */
export type WireguardFamily = number;

/** Attributes of a device. */
export type DeviceAttributes = AttributeValues<(typeof WGDEVICE)['declarations']>;

/** A request about one device. @param index of the link */
export function wireguardRequest(
  family: WireguardFamily,
  operation: keyof typeof WG_CMD,
  index: number,
  attributes: DeviceAttributes = {},
): NetlinkRequest {
  const header = { cmd: WG_CMD[operation], version: WG_GENL_VERSION };
  return {
    type: family,
    flags: 0,
    operation,
    object: `WireGuard device ${index}`,
    payload: encodeBody(genlmsghdr, header, WGDEVICE, { WGDEVICE_A_IFINDEX: index, ...attributes }),
  };
}
