import { ByteWriter, type ErrnoMeaning } from '../../core/index.ts';
import { encodeBody } from '../attribute-set.ts';
import { readMessages } from '../message.ts';
import { Netlink } from '../netlink.ts';
import { openSocket } from '../socket.ts';
import { NETLINK_NETFILTER } from '../uapi/netlink.ts';
import { NFNETLINK_V0, nfgenmsg, nfnlType } from '../uapi/nfnetlink.ts';
import * as uapi from '../uapi/nfnetlink-log.ts';
import { type SocketWatch, watchSocket } from '../watch/index.ts';

/** Of each packet: the longest headers of IP, and ports and flags behind them. */
const COPIED_BYTES = 128;

const EPERM = 1;
/** The kernel says the same of both (nfulnl_recv_config, net/netfilter/nfnetlink_log.c). */
const OWN_ERRORS: ReadonlyMap<number, ErrnoMeaning> = new Map([
  [EPERM, { name: 'EPERM', text: 'another program listens to the group, or CAP_NET_ADMIN is missing' }],
]);

/** A packet that the kernel was asked to log. */
export interface LoggedPacket {
  /** What the rule says, or the kernel in its place. */
  readonly prefix: string;
  /** NF_INET_*: 0 for prerouting, then input, forward, output, postrouting. */
  readonly hook: number;
  /** From the network header on, as far as it was copied. */
  readonly bytes: Uint8Array;
}

/**
 * Tells what is logged to a group in the calling thread's namespace (`inNetns` for another), until `close`. A group has one listener.
 *
 * @param group that of rules is in them (`-j NFLOG`); what goes to the logger of a family (`net.netfilter.nf_log.2`) is in group 0
 * @param listener 'lost' when packets came faster than they were read
 * @throws ERR_NETLINK_SOCKET; KernelError EPERM when somebody listens already
 */
export function watchLog(group: number, listener: (packet: LoggedPacket | 'lost') => void): SocketWatch {
  const socket = openSocket(NETLINK_NETFILTER);
  try {
    const mode = new ByteWriter(uapi.nfulnl_msg_config_mode.size);
    uapi.nfulnl_msg_config_mode.encode(mode, { copy_range: COPIED_BYTES, copy_mode: uapi.NFULNL_COPY_PACKET });
    // Nothing is logged to this socket before: the only answer is the acknowledgement.
    new Netlink(socket).execute({
      type: nfnlType(uapi.NFNL_SUBSYS_ULOG, uapi.NFULNL_MSG_CONFIG),
      flags: 0,
      operation: 'NFULNL_MSG_CONFIG',
      object: `log group ${group}`,
      ownErrors: OWN_ERRORS,
      payload: encodeBody(nfgenmsg, { version: NFNETLINK_V0, res_id: group }, uapi.NFULA_CFG, {
        NFULA_CFG_CMD: uapi.NFULNL_CFG_CMD_BIND,
        NFULA_CFG_MODE: mode.written(),
        NFULA_CFG_QTHRESH: 1,
      }),
    });
  } catch (error) {
    socket.close();
    throw error;
  }
  return watchSocket(socket, (datagram) => {
    if (datagram === 'lost') return listener('lost');
    for (const packet of decodeLog(datagram)) listener(packet);
  });
}

/** The packets in a datagram. Throws ERR_NETLINK_DECODE. */
function decodeLog(datagram: Uint8Array): LoggedPacket[] {
  return [...readMessages(datagram)]
    .filter(({ type }) => type === nfnlType(uapi.NFNL_SUBSYS_ULOG, uapi.NFULNL_MSG_PACKET))
    .map(({ payload }) => {
      const { NFULA_PACKET_HDR, NFULA_PAYLOAD, NFULA_PREFIX } = uapi.NFULA.decode(payload, nfgenmsg.size);
      const hook = NFULA_PACKET_HDR ? uapi.nfulnl_msg_packet_hdr.decode(NFULA_PACKET_HDR).hook : 0;
      return { prefix: NFULA_PREFIX ?? '', hook, bytes: NFULA_PAYLOAD ?? new Uint8Array() };
    });
}
