/** A change that the kernel was asked for by netlink and refused. */
export interface RefusedChange {
  /** The type of the refused message, as its number: what `NLMSG_ERROR` repeats of the request. */
  readonly type: number;
  /** Positive. */
  readonly errno: number;
}

const NFNL_SUBSYS_NFTABLES = 10;
/** NFT_MSG_GET* of <linux/netfilter/nf_tables.h>. */
const NFT_QUESTIONS: readonly number[] = [1, 4, 7, 10, 13, 16, 19, 23];

/** RTM_DELNEIGH of <linux/rtnetlink.h>. */
const RTM_DELNEIGH = 29;
const ENOENT = 2;

/**
 * The changes that the kernel refused, in what a program printed that ran with NODEPLANE_NETLINK_DEBUG=1 (on standard
 * error). A question that is answered by an error (RTM_GETLINK: there is none of that name) is no change, and costs nothing;
 * a refused transaction of nf_tables is taken back by the kernel, which waits for all of its readers (RCU) then. Nor does
 * the removal of a neighbour that is not there count, which goes along with other changes and costs as little.
 */
export function refusedChanges(output: string): RefusedChange[] {
  return [...output.matchAll(/^netlink < NLMSG_ERROR flags \S+ seq \d+ ([0-9a-f]+)$/gm)]
    .map(([, hex]) => Buffer.from(hex!, 'hex'))
    .map((payload) => ({ errno: -payload.readInt32LE(0), type: payload.readUInt16LE(8) }))
    .filter(({ errno, type }) => errno !== 0 && !isQuestion(type) && !(type === RTM_DELNEIGH && errno === ENOENT));
}

/** In rtnetlink the last two bits of a type tell NEW, DEL, GET and SET. Other subsystems of nfnetlink number theirs. */
function isQuestion(type: number): boolean {
  const [subsystem, message] = [type >> 8, type & 0xff];
  return subsystem === NFNL_SUBSYS_NFTABLES ? NFT_QUESTIONS.includes(message) : subsystem === 0 && (type & 3) === 2;
}
