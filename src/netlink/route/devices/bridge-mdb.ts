import { ByteWriter, type IpAddress } from '../../../core/index.ts';
import { decodeIp } from '../../address-family.ts';
import { readAttributes } from '../../attribute.ts';
import type { NetlinkRequest } from '../../message.ts';
import type { Netlink } from '../../netlink.ts';
import {
  br_mdb_entry,
  br_port_msg,
  MDB_ENTRY_ADDRESS_AT,
  MDBA_MDB,
  MDBA_MDB_ENTRY,
  MDBA_MDB_ENTRY_INFO,
} from '../../uapi/if-bridge.ts';
import { AF_BRIDGE, RTM_GETMDB } from '../../uapi/rtnetlink.ts';

/** ETH_P_IPV6, <linux/if_ether.h>. */
const IPV6 = 0x86dd;

/** Who listens to a group of IPv6, to the mind of a bridge that snoops. */
export interface BridgeListener {
  /** Index of the port; of the bridge itself, where it is this host that listens. */
  readonly index: number;
  readonly group: IpAddress;
}

/** The listeners to groups of IPv6 of all bridges of the socket's namespace. Throws KernelError, ERR_NETLINK_DECODE. */
export function listBridgeListeners(netlink: Netlink): BridgeListener[] {
  return netlink.dump(bridgeListenerListing()).flatMap(decodeBridgeListeners);
}

function bridgeListenerListing(): NetlinkRequest {
  const writer = new ByteWriter();
  br_port_msg.encode(writer, { family: AF_BRIDGE });
  return {
    type: RTM_GETMDB,
    flags: 0,
    operation: 'RTM_GETMDB',
    object: 'listeners of all bridges',
    payload: writer.written(),
  };
}

/** Decodes the payload of an RTM_NEWMDB. Throws ERR_NETLINK_DECODE. */
export function decodeBridgeListeners(payload: Uint8Array): BridgeListener[] {
  const listeners: BridgeListener[] = [];
  for (const info of nested(payload, br_port_msg.size, [MDBA_MDB, MDBA_MDB_ENTRY, MDBA_MDB_ENTRY_INFO])) {
    const { ifindex, proto } = br_mdb_entry.decode(info);
    const address = info.subarray(MDB_ENTRY_ADDRESS_AT, MDB_ENTRY_ADDRESS_AT + 16);
    if (proto === IPV6) listeners.push({ index: ifindex, group: decodeIp('IPv6', address, 'br_mdb_entry.addr') });
  }
  return listeners;
}

/** The values of all attributes of the last of these types, each in one of the type before. */
function nested(bytes: Uint8Array, offset: number, [outer, ...inner]: readonly number[]): readonly Uint8Array[] {
  const values = [...readAttributes(bytes, offset, 'RTM_NEWMDB')].filter(({ type }) => type === outer);
  return values.flatMap(({ value }) => (inner.length === 0 ? [value] : nested(value, 0, inner)));
}
