import { ByteWriter, readU16 } from '../../../core/index.ts';
import { readAttributes } from '../../attribute.ts';
import { encodeBody, encodeNest } from '../../attribute-set.ts';
import { decodeError } from '../../decode-error.ts';
import type { NetlinkRequest } from '../../message.ts';
import type { Netlink } from '../../netlink.ts';
import {
  BRIDGE_FLAGS_SELF,
  BRIDGE_VLAN_INFO_PVID,
  BRIDGE_VLAN_INFO_RANGE_BEGIN,
  BRIDGE_VLAN_INFO_RANGE_END,
  BRIDGE_VLAN_INFO_UNTAGGED,
  bridge_vlan_info,
  IFLA_BRIDGE,
} from '../../uapi/if-bridge.ts';
import { IFLA, RTEXT_FILTER_BRVLAN_COMPRESSED, RTEXT_FILTER_SKIP_STATS } from '../../uapi/if-link.ts';
import { AF_BRIDGE, ifinfomsg, RTM_DELLINK, RTM_GETLINK, RTM_SETLINK } from '../../uapi/rtnetlink.ts';

/** VLANs of a bridge port, or of a bridge itself, that have the same properties. */
export interface BridgeVlan {
  /** Index of the port or bridge. */
  readonly index: number;
  readonly first: number;
  /** Inclusive. */
  readonly last: number;
  /** Untagged frames that come in belong to it. */
  readonly pvid: boolean;
  /** Its frames go out without tag. */
  readonly untagged: boolean;
}

/** Makes a port a member of VLANs. EOPNOTSUPP when the kernel's bridge does not know VLANs. */
export function newBridgeVlan(vlan: BridgeVlan): NetlinkRequest {
  return vlanRequest(RTM_SETLINK, 'RTM_SETLINK', vlan);
}

/** Makes a bridge itself a member of a VLAN, tagged: links of that VLAN above it get the frames. */
export function newOwnBridgeVlan(bridge: number, id: number): NetlinkRequest {
  const vlan = { index: bridge, first: id, last: id, pvid: false, untagged: false };
  return vlanRequest(RTM_SETLINK, 'RTM_SETLINK', vlan, BRIDGE_FLAGS_SELF);
}

/** Ends a port's membership. ENOENT when it was none (`isNotFound`). */
export function deleteBridgeVlan(vlan: Pick<BridgeVlan, 'index' | 'first' | 'last'>): NetlinkRequest {
  return vlanRequest(RTM_DELLINK, 'RTM_DELLINK', { ...vlan, pvid: false, untagged: false });
}

/** The VLANs of all bridges and their ports of the socket's namespace. Throws KernelError, ERR_NETLINK_DECODE. */
export function listBridgeVlans(netlink: Netlink): BridgeVlan[] {
  return netlink.dump(bridgeVlanListing).flatMap(decodeBridgeVlans);
}

/** The request behind `listBridgeVlans`. */
export const bridgeVlanListing: NetlinkRequest = {
  type: RTM_GETLINK,
  flags: 0,
  operation: 'RTM_GETLINK',
  object: 'VLANs of all bridge ports',
  payload: encodeBody(ifinfomsg, { ifi_family: AF_BRIDGE }, IFLA, {
    IFLA_EXT_MASK: RTEXT_FILTER_BRVLAN_COMPRESSED | RTEXT_FILTER_SKIP_STATS,
  }),
};

/** Decodes the payload of an RTM_NEWLINK of family AF_BRIDGE. Throws ERR_NETLINK_DECODE. */
export function decodeBridgeVlans(payload: Uint8Array): BridgeVlan[] {
  const index = ifinfomsg.decode(payload).ifi_index;
  const afSpec = IFLA.decode(payload, ifinfomsg.size).IFLA_AF_SPEC ?? new Uint8Array();
  const vlans: BridgeVlan[] = [];
  let begin: number | undefined;
  for (const { type, value } of readAttributes(afSpec, 0, 'IFLA_AF_SPEC')) {
    if (type !== IFLA_BRIDGE.declarations.IFLA_BRIDGE_VLAN_INFO[0]) continue;
    if (value.length !== bridge_vlan_info.size) {
      throw decodeError('IFLA_BRIDGE_VLAN_INFO', `it has ${value.length} bytes, expected ${bridge_vlan_info.size}`);
    }
    const [flags, vid] = [readU16(value, 0), readU16(value, 2)];
    if ((flags & BRIDGE_VLAN_INFO_RANGE_BEGIN) !== 0) {
      begin = vid;
      continue;
    }
    const isRange = (flags & BRIDGE_VLAN_INFO_RANGE_END) !== 0;
    vlans.push({
      index,
      first: isRange ? (begin ?? vid) : vid,
      last: vid,
      pvid: (flags & BRIDGE_VLAN_INFO_PVID) !== 0,
      untagged: (flags & BRIDGE_VLAN_INFO_UNTAGGED) !== 0,
    });
  }
  return vlans;
}

function vlanRequest(
  type: number,
  operation: string,
  { index, first, last, pvid, untagged }: BridgeVlan,
  ofWhom?: typeof BRIDGE_FLAGS_SELF,
): NetlinkRequest {
  const flags = (pvid ? BRIDGE_VLAN_INFO_PVID : 0) | (untagged ? BRIDGE_VLAN_INFO_UNTAGGED : 0);
  const infos =
    first === last
      ? [vlanInfo(flags, first)]
      : [vlanInfo(flags | BRIDGE_VLAN_INFO_RANGE_BEGIN, first), vlanInfo(flags | BRIDGE_VLAN_INFO_RANGE_END, last)];
  return {
    type,
    flags: 0,
    operation,
    object: `VLAN ${first === last ? first : `${first}-${last}`} of bridge ${ofWhom ? '' : 'port '}${index}`,
    payload: encodeBody(ifinfomsg, { ifi_family: AF_BRIDGE, ifi_index: index }, IFLA, {
      IFLA_AF_SPEC: Buffer.concat([encodeNest(IFLA_BRIDGE, { IFLA_BRIDGE_FLAGS: ofWhom }), ...infos]),
    }),
  };
}

function vlanInfo(flags: number, vid: number): Uint8Array {
  const writer = new ByteWriter();
  bridge_vlan_info.encode(writer, { flags, vid });
  return encodeNest(IFLA_BRIDGE, { IFLA_BRIDGE_VLAN_INFO: writer.written() });
}
