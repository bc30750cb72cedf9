import { readMessages } from '../../../src/netlink/index.ts';
import { openSocket } from '../../../src/netlink/socket.ts';
import { NETLINK_NETFILTER } from '../../../src/netlink/uapi/index.ts';
import { nfnlType } from '../../../src/netlink/uapi/nfnetlink.ts';
import { inNetns } from '../../../src/sys/index.ts';

// <linux/netfilter/nfnetlink_queue.h>
const NFNL_SUBSYS_QUEUE = 3;
const [NFQNL_MSG_PACKET, NFQNL_MSG_VERDICT, NFQNL_MSG_CONFIG] = [0, 1, 2];
const [NFQA_CFG_CMD, NFQA_CFG_PARAMS, NFQA_PACKET_HDR, NFQA_VERDICT_HDR] = [1, 2, 1, 2];
const [NFQNL_CFG_CMD_BIND, NFQNL_COPY_META, NF_ACCEPT] = [1, 1, 1];
const NLM_F_REQUEST = 1;
/** nlmsghdr and nfgenmsg. */
const HEADER = 20;

/** A queue (`-j NFQUEUE`) that holds packets in the middle of a node's rules until they are let go. */
export interface PacketQueue {
  /** Lets all packets go on that wait now, in their order. @returns how many */
  release(): number;
  close(): void;
}

export function openPacketQueue(netns: string, queue: number): PacketQueue {
  const socket = inNetns(netns, () => openSocket(NETLINK_NETFILTER));
  const send = (message: number, attribute: number, value: Buffer) => {
    const data = Buffer.alloc(HEADER + 4 + Math.ceil(value.length / 4) * 4);
    data.writeUInt32LE(data.length, 0);
    data.writeUInt16LE(nfnlType(NFNL_SUBSYS_QUEUE, message), 4);
    data.writeUInt16LE(NLM_F_REQUEST, 6);
    data.writeUInt16BE(queue, 18);
    data.writeUInt16LE(4 + value.length, HEADER);
    data.writeUInt16LE(attribute, HEADER + 2);
    value.copy(data, HEADER + 4);
    socket.send(data);
  };
  send(NFQNL_MSG_CONFIG, NFQA_CFG_CMD, Buffer.from([NFQNL_CFG_CMD_BIND, 0, 0, 0]));
  // Of each packet its first 64 bytes at most: nobody reads them.
  send(NFQNL_MSG_CONFIG, NFQA_CFG_PARAMS, Buffer.from([0, 0, 0, 64, NFQNL_COPY_META]));
  return {
    release() {
      let released = 0;
      for (let datagram = socket.receiveWaiting(); datagram; datagram = socket.receiveWaiting()) {
        if (datagram === 'overrun') throw new Error('more packets are queued than are read');
        for (const { type, payload } of readMessages(datagram)) {
          if (type !== nfnlType(NFNL_SUBSYS_QUEUE, NFQNL_MSG_PACKET)) continue;
          // The first attribute: its number, be32.
          const attribute = Buffer.from(payload.subarray(4));
          if (attribute.readUInt16LE(2) !== NFQA_PACKET_HDR) throw new Error('a queued packet without a number');
          const verdict = Buffer.alloc(8);
          verdict.writeUInt32BE(NF_ACCEPT, 0);
          attribute.copy(verdict, 4, 4, 8);
          send(NFQNL_MSG_VERDICT, NFQA_VERDICT_HDR, verdict);
          released += 1;
        }
      }
      return released;
    },
    close: () => socket.close(),
  };
}
