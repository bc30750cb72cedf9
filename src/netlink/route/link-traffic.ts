import { isNotFound } from '../../core/index.ts';
import { encodeBody } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { IFLA } from '../uapi/if-link.ts';
import { ifinfomsg, RTM_GETLINK } from '../uapi/rtnetlink.ts';

/** What went through a link since it was made. */
export interface LinkTraffic {
  readonly packetsIn: bigint;
  readonly packetsOut: bigint;
  readonly bytesIn: bigint;
  readonly bytesOut: bigint;
}

/**
 * The counters of the link with this name; undefined when there is none. Throws KernelError, ERR_NETLINK_DECODE.
 */
export function getLinkTraffic(netlink: Netlink, name: string): LinkTraffic | undefined {
  const [answer] = netlink.exchange([], [linkTrafficQuery(name)]).answers;
  if (answer instanceof Uint8Array) return decodeLinkTraffic(answer);
  if (answer && !isNotFound(answer)) throw answer;
  return undefined;
}

/** The request behind `getLinkTraffic`: unlike `linkQuery` it does not ask for the counters to be left out. */
function linkTrafficQuery(name: string): NetlinkRequest {
  return {
    type: RTM_GETLINK,
    flags: 0,
    operation: 'RTM_GETLINK',
    object: `counters of link "${name}"`,
    payload: encodeBody(ifinfomsg, {}, IFLA, { IFLA_IFNAME: name }),
  };
}

/**
 * Decodes the counters in the payload of an RTM_NEWLINK. Throws ERR_NETLINK_DECODE.
 *
 * struct rtnl_link_stats64 {
 *   __u64 rx_packets;
 *   __u64 tx_packets;
 *   __u64 rx_bytes;
 *   __u64 tx_bytes;
 *   ...               // more of them in newer kernels
 * };
 */
export function decodeLinkTraffic(payload: Uint8Array): LinkTraffic {
  const { IFLA_STATS64: stats } = IFLA.decode(payload, ifinfomsg.size);
  if (!stats || stats.length < 32)
    throw decodeError('IFLA_STATS64', `it has ${stats?.length ?? 0} bytes, expected 32 or more`);
  const counters = Buffer.from(stats.buffer, stats.byteOffset, stats.length);
  const [packetsIn, packetsOut, bytesIn, bytesOut] = [0, 8, 16, 24].map((at) => counters.readBigUInt64LE(at));
  return { packetsIn: packetsIn!, packetsOut: packetsOut!, bytesIn: bytesIn!, bytesOut: bytesOut! };
}
