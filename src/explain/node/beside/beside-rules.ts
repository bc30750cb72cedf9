import type { Netlink } from '../../../netlink/index.ts';
import {
  type Link,
  listActingFilters,
  listLinkFilters,
  listQdiscs,
  type Qdisc,
  slowestHtbClass,
} from '../../../netlink/route/index.ts';
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

/** What the kernel counts for a frame in memory is less than so many times its length, but for small ones. */
const MOST_OVERHEAD = 4;

/**
 * What of it is on a link of the calling thread's namespace.
 *
 * @param netlink a conversation there
 * @param isKnownTarget whether a filter that passes everything on to this link only slows it down
 * @throws what netlink throws
 */
export function besideRulesOf(netlink: Netlink, link: Link, isKnownTarget: (index: number) => boolean): BesideRules[] {
  const { index, name } = link;
  const queues = listQdiscs(netlink, index);
  const filter = listLinkFilters(netlink, index).find(({ redirectsTo }) => !isKnownTarget(redirectsTo ?? 0));
  // None is at a queue without a number, and those of `ingress` and `clsact` are among the link's.
  const numbered = queues.filter(({ handle, kind }) => handle !== 0 && !['ingress', 'clsact'].includes(kind));
  const [atQueue] = numbered.flatMap(({ handle }) => listActingFilters(netlink, index, handle));
  const filters = filter?.kind ?? atQueue;
  const queue = queues.find((one) => mayDrop(one, netlink, link));
  const show = filter
    ? `tc filter show dev ${name} ingress; tc filter show dev ${name} egress`
    : `tc filter show dev ${name}`;
  return [
    ...(link.hasXdp
      ? [{ what: 'a program of XDP', kind: undefined, leads: true, show: `ip -d link show ${name}` }]
      : []),
    ...(hasTcx(index)
      ? [{ what: 'a program of tcx', kind: undefined, leads: true, show: `bpftool net show dev ${name}` }]
      : []),
    ...(filters !== undefined ? [{ what: 'a filter of tc', kind: filters, leads: true, show }] : []),
    ...(queue ? [{ what: 'a queue of tc', kind: queue.kind, leads: false, show: `tc -s qdisc show dev ${name}` }] : []),
  ];
}

function mayDrop({ kind, tokenBucket, limits }: Qdisc, netlink: Netlink, { index, mtu }: Link): boolean {
  const frame = mtu + FRAME_HEADER;
  if (tokenBucket) return Math.min(tokenBucket.burst, tokenBucket.limit) < frame || tokenBucket.rate < CRAWL;
  const { packets = 1, bytes = frame, memory = frame * MOST_OVERHEAD, rate = CRAWL } = limits;
  const isTight = packets < 1 || bytes < frame || memory < frame * MOST_OVERHEAD || rate < CRAWL;
  return isTight || !HARMLESS.has(kind) || (kind === 'htb' && slowestHtbClass(netlink, index) < CRAWL);
}
