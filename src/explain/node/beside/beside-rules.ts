import type { Netlink } from '../../../netlink/index.ts';
import { type Link, listLinkFilters, listQdiscs, type Qdisc } from '../../../netlink/route/index.ts';
import { hasTcx } from './bpf-programs.ts';

// What is not of netfilter and sees the packets of a link: programs of BPF, filters and queues of tc.

/** One of them. */
export interface BesideRules {
  /** In words: `a filter of tc`. */
  readonly what: string;
  /** `bpf`, `netem`; undefined: there is no more to say. */
  readonly kind: string | undefined;
  /** It may send packets past all else on their way: programs may, queues do not. */
  readonly leads: boolean;
  /** A command line that shows it. */
  readonly show: string;
}

/** Queues that drop only what does not fit them. */
const HARMLESS: ReadonlySet<string> = new Set(
  'noqueue pfifo bfifo pfifo_fast mq mqprio multiq prio fq fq_codel codel sfq cake htb ingress clsact'.split(' '),
);
/** Of Ethernet, which the MTU does not count. */
const FRAME_HEADER = 14;
/** Bytes per second: who sends slower than this does not connect in time. */
const CRAWL = 1000;

/**
 * What of it is on a link of the calling thread's namespace.
 *
 * @param netlink a conversation there
 * @param isKnownTarget whether a filter that passes everything on to this link only slows it down
 * @throws what netlink throws
 */
export function besideRulesOf(netlink: Netlink, link: Link, isKnownTarget: (index: number) => boolean): BesideRules[] {
  const { index, name } = link;
  const filter = listLinkFilters(netlink, index).find(({ redirectsTo }) => !isKnownTarget(redirectsTo ?? 0));
  const queue = listQdiscs(netlink, index).find((one) => mayDrop(one, link));
  const show = `tc filter show dev ${name} ingress; tc filter show dev ${name} egress`;
  return [
    ...(link.hasXdp
      ? [{ what: 'a program of XDP', kind: undefined, leads: true, show: `ip -d link show ${name}` }]
      : []),
    ...(hasTcx(index)
      ? [{ what: 'a program of tcx', kind: undefined, leads: true, show: `bpftool net show dev ${name}` }]
      : []),
    ...(filter ? [{ what: 'a filter of tc', kind: filter.kind, leads: true, show }] : []),
    ...(queue ? [{ what: 'a queue of tc', kind: queue.kind, leads: false, show: `tc -s qdisc show dev ${name}` }] : []),
  ];
}

function mayDrop({ kind, tokenBucket, limit }: Qdisc, { mtu }: Link): boolean {
  const frame = mtu + FRAME_HEADER;
  if (tokenBucket) return Math.min(tokenBucket.burst, tokenBucket.limit) < frame || tokenBucket.rate < CRAWL;
  if (limit !== undefined && limit < (kind === 'bfifo' ? frame : 1)) return true;
  return !HARMLESS.has(kind);
}
