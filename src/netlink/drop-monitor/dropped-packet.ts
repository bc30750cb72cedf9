import { readMessages } from '../message.ts';
import { genlmsghdr } from '../uapi/genetlink.ts';
import { NET_DM_ATTRIBUTES, NET_DM_CMD } from '../uapi/net-dropmon.ts';

/** A packet that the kernel dropped. */
export interface DroppedPacket {
  /** `NO_SOCKET`; undefined before Linux 5.17. `NOT_SPECIFIED` is also what it says of packets that it is simply done with. */
  readonly reason: string | undefined;
  /** The kernel's function: `udp_queue_rcv_one_skb`. */
  readonly place: string;
  /** ETH_P_* of what is behind the link's header. */
  readonly etherType: number;
  /** From the link's header on, as much as was asked for. */
  readonly bytes: Uint8Array;
}

/**
 * The packets in a datagram of the drop monitor's multicast group.
 *
 * @param family the message type of NET_DM, from `resolveFamily`
 * @throws ERR_NETLINK_DECODE
 */
export function decodeDrops(datagram: Uint8Array, family: number): DroppedPacket[] {
  return [...readMessages(datagram)].flatMap(({ type, payload }) => {
    if (type !== family || genlmsghdr.decode(payload).cmd !== NET_DM_CMD.NET_DM_CMD_PACKET_ALERT) return [];
    const told = NET_DM_ATTRIBUTES.decode(payload, genlmsghdr.size);
    const place = (told.NET_DM_ATTR_SYMBOL ?? '').replace(/\+.*/, '');
    const bytes = told.NET_DM_ATTR_PAYLOAD ?? new Uint8Array();
    return [{ reason: told.NET_DM_ATTR_REASON, place, etherType: told.NET_DM_ATTR_PROTO ?? 0, bytes }];
  });
}
