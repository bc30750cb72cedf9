import { encodeBody } from '../attribute-set.ts';
import { readU64 } from '../integer.ts';
import type { Netlink } from '../netlink.ts';
import {
  TC_H_ROOT,
  TCA,
  TCA_CAKE,
  TCA_CODEL,
  TCA_FQ,
  TCA_FQ_CODEL,
  TCA_HTB,
  tc_fifo_qopt,
  tc_htb_opt,
  tcmsg,
} from '../uapi/pkt-sched.ts';
import { RTM_GETTCLASS } from '../uapi/rtnetlink.ts';

// What a queueing discipline lets pass at all.

/** What is not there has no limit of its own, or one that is not read here. */
export interface QueueLimits {
  /** How many packets may wait. */
  readonly packets?: number | undefined;
  /** How many bytes may wait, of the frames themselves. */
  readonly bytes?: number | undefined;
  /** The same with all the memory that the kernel counts for them. */
  readonly memory?: number | undefined;
  /** Bytes per second. */
  readonly rate?: number | undefined;
}

const LIMITS: Readonly<Record<string, (options: Uint8Array) => QueueLimits>> = {
  pfifo: (options) => ({ packets: tc_fifo_qopt.decode(options).limit }),
  bfifo: (options) => ({ bytes: tc_fifo_qopt.decode(options).limit }),
  fq(options) {
    const { TCA_FQ_PLIMIT: all, TCA_FQ_FLOW_PLIMIT: ofFlow, TCA_FQ_FLOW_MAX_RATE: rate } = TCA_FQ.decode(options);
    return { packets: least(all, ofFlow), rate };
  },
  codel: (options) => ({ packets: TCA_CODEL.decode(options).TCA_CODEL_LIMIT }),
  fq_codel(options) {
    const { TCA_FQ_CODEL_LIMIT: packets, TCA_FQ_CODEL_MEMORY_LIMIT: memory } = TCA_FQ_CODEL.decode(options);
    return { packets, memory };
  },
  cake(options) {
    const { TCA_CAKE_BASE_RATE64: rate, TCA_CAKE_MEMORY: memory } = TCA_CAKE.decode(options);
    // 0 is none.
    return { rate: (rate && readRate('TCA_CAKE_BASE_RATE64', rate)) || undefined, memory: memory || undefined };
  },
  // Of what no class is for.
  htb: (options) => ({ packets: TCA_HTB.decode(options).TCA_HTB_DIRECT_QLEN }),
};

/** What TCA_OPTIONS of a qdisc say of it. Throws ERR_NETLINK_DECODE. */
export function decodeLimits(kind: string, options: Uint8Array | undefined): QueueLimits {
  return (options && Object.hasOwn(LIMITS, kind) && LIMITS[kind]?.(options)) || {};
}

function least(...limits: readonly (number | undefined)[]): number | undefined {
  const known = limits.filter((limit) => limit !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
}

/** A rate; above 2^53 bytes per second it loses its last bits. Throws ERR_NETLINK_DECODE. */
export function readRate(name: string, bytes: Uint8Array): number {
  return Number(readU64(bytes, name));
}

/** A class of a qdisc of kind `htb`. */
export interface HtbClass {
  readonly handle: number;
  readonly parent: number;
  /** Bytes per second, its own and with what it borrows. */
  readonly rate: number;
  readonly ceiling: number;
}

/**
 * How many bytes per second the slowest class of the device's `htb` qdiscs sends at most, of those that packets wait
 * in; Infinity: there are none. Throws KernelError, ERR_NETLINK_DECODE.
 */
export function slowestHtbClass(netlink: Netlink, index: number): number {
  const request = {
    type: RTM_GETTCLASS,
    flags: 0,
    operation: 'RTM_GETTCLASS',
    object: `classes of device ${index}`,
    payload: encodeBody(tcmsg, { tcm_ifindex: index }, TCA, {}),
  };
  return slowestOf(netlink.dump(request).flatMap(decodeHtbClass));
}

/** None of another kind of qdisc. Throws ERR_NETLINK_DECODE. */
function decodeHtbClass(payload: Uint8Array): HtbClass[] {
  const { tcm_handle: handle, tcm_parent: parent } = tcmsg.decode(payload);
  const { TCA_KIND: kind, TCA_OPTIONS: options } = TCA.decode(payload, tcmsg.size);
  if (kind !== 'htb' || !options) return [];
  const { TCA_HTB_PARMS: parms, TCA_HTB_RATE64: rate64, TCA_HTB_CEIL64: ceil64 } = TCA_HTB.decode(options);
  if (!parms) return [];
  const { rate_rate, ceil_rate } = tc_htb_opt.decode(parms);
  const rate = rate64 ? readRate('TCA_HTB_RATE64', rate64) : rate_rate;
  const ceiling = ceil64 ? readRate('TCA_HTB_CEIL64', ceil64) : ceil_rate;
  return [{ handle, parent, rate, ceiling }];
}

/** A class borrows what its parent may send, up to its own ceiling. Exported for tests. */
export function slowestOf(classes: readonly HtbClass[]): number {
  const byHandle = new Map(classes.map((one) => [one.handle, one]));
  const mostOf = ({ rate, ceiling, parent }: HtbClass): number => {
    const lender = parent === TC_H_ROOT ? undefined : byHandle.get(parent);
    return lender ? Math.max(rate, Math.min(ceiling, mostOf(lender))) : rate;
  };
  const inner = new Set(classes.map(({ parent }) => parent));
  return Math.min(Number.POSITIVE_INFINITY, ...classes.filter(({ handle }) => !inner.has(handle)).map(mostOf));
}
