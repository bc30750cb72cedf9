import { setTimeout as sleep } from 'node:timers/promises';
import { errorText, type IpFamily, KernelError, NodeplaneError } from '../../core/index.ts';
import { listFlows, watchFlows } from '../../netlink/conntrack/index.ts';
import { closing, Netlink, openTogether, withNetlink } from '../../netlink/index.ts';
import { Nftables, type NftRule, watchTraces } from '../../netlink/nftables/index.ts';
import { ruleText } from '../../netlink/nftables/text/index.ts';
import { getLink } from '../../netlink/route/index.ts';
import { NETLINK_NETFILTER, NETLINK_ROUTE } from '../../netlink/uapi/index.ts';
import type { Exec } from '../../sys/index.ts';
import { type DropReasons, noteDropReasons } from './drops/drop-reasons.ts';
import { FlowBook } from './flow-book.ts';
import { compareIpvs, ipvsConnections, readIpvs } from './ipvs-view.ts';
import { divertLog } from './legacy/divert-log.ts';
import { type LegacyStep, legacyDropOf, watchLegacySteps } from './legacy/legacy-steps.ts';
import { legacyDrops, readLegacy } from './legacy/saved-tables.ts';
import { makeReport } from './make-report.ts';
import { outcomeWithin, type ProbeOutcome } from './probe.ts';
import type { UnderstoodQuestion } from './question.ts';
import type { TraceReport } from './trace-report.ts';
import { TRACE_TABLE, traceTable } from './trace-table.ts';
import { type Drop, isComplete } from './traced-flow.ts';

/** What follows a flow's end at once, as the event of conntrack that tells of it. */
const GRACE_MS = 100;

/** How long the pod's own view of a flow is waited for that is complete here. */
const PROBE_MS = 3000;

/** How to trace. */
export interface RunTraceOptions {
  readonly question: UnderstoodQuestion;
  /** The longest that is watched. */
  readonly durationMs: number;
  /** Sends something, once the trace stands; undefined: others are waited for. */
  readonly probe: ((signal: AbortSignal) => Promise<ProbeOutcome>) | undefined;
  readonly exec: Exec;
  /** Ends the trace early. @default never */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Watches what becomes of packets in the namespace of the calling thread, until a flow is complete or the time is over. What it puts
 * into the kernel goes with its socket, however this process ends.
 *
 * @throws ERR_NFTABLES when another trace runs, or this kernel has no tables with an owner (Linux 5.12); ERR_NETLINK_SOCKET; what
 *   `probe` throws
 */
export async function runTrace(options: RunTraceOptions): Promise<TraceReport> {
  const { question, durationMs, exec, signal } = options;
  const { tuples } = question;
  const { family } = tuples[0]!.destination;
  const book = new FlowBook(tuples);
  const ports = new Set(tuples.map(({ protocol, port }) => `${protocol} ${port}`));
  const probing = new AbortController();
  let lost = false;
  let complete: () => void = () => {};
  const completed = new Promise<void>((resolve) => {
    complete = resolve;
  });
  const take = (put: (at: number) => void) => {
    put(performance.now());
    if (book.flows.some(isComplete)) complete();
  };
  const missed = () => {
    lost = true;
  };
  const before = await readLegacy(exec, family);
  const ipvsBefore = readIpvs(tuples);
  const began = performance.now();
  const opened = openTogether((keep) => ({
    // Before the table: nothing that it makes the kernel tell is missed.
    traces: keep(watchTraces((event) => (event === 'lost' ? missed() : take((at) => book.packet(event, at))))),
    flows: keep(
      watchFlows(
        (event) => (event === 'lost' ? missed() : take((at) => book.connection(event, at))),
        (protocol, port) => ports.has(`${protocol} ${port}`),
      ),
    ),
    nft: keep(Nftables.open()),
  }));
  let legacy: FollowedLegacy | undefined;
  let drops: DropReasons | undefined;
  try {
    noteKnownFlows(book, question);
    arm(opened.nft, question);
    if (before && before.chains.size > 0) legacy = followLegacy(family, missed);
    // Once no other trace runs: the kernel has one drop monitor.
    drops = noteDropReasons(book);
    const attempt = options.probe?.(probing.signal);
    // Awaited below, once the trace is over.
    attempt?.catch(() => {});
    await firstOf(completed, durationMs, signal);
    const rest = Math.max(0, durationMs - (performance.now() - began));
    const probed = attempt && (await outcomeWithin(attempt, Math.min(rest, PROBE_MS)));
    await sleep(Math.min(GRACE_MS, Math.max(rest, 1)));
    opened.traces.catchUp();
    opened.flows.catchUp();
    drops.catchUp();
    book.settle();
    const ended = performance.now();
    legacy?.catchUp();
    const after = before && (await readLegacy(exec, family));
    return withNetlink(NETLINK_ROUTE, (netlink) =>
      makeReport({
        question,
        book,
        began,
        ended,
        probe: probed,
        lost,
        legacy: {
          counted: legacyDrops(before, after),
          dropOf: (flow, direction) => legacyDropOf(flow, direction, legacy?.steps ?? [], [before, after]),
          unseen: legacy?.unseen,
        },
        ipvs: ipvsConnections(tuples),
        ipvsServers: compareIpvs(ipvsBefore, readIpvs(tuples)),
        dropReasons: drops?.missing,
        linkName: (index) => getLink(netlink, { index })?.name ?? `interface ${index}`,
        ruleText: (drop) => textOf(opened.nft, drop),
      }),
    );
  } finally {
    probing.abort();
    legacy?.close();
    drops?.close();
    // Last: its table keeps other traces out, and goes with its socket.
    opened.nft.close();
    opened.traces.close();
    opened.flows.close();
  }
}

interface FollowedLegacy {
  readonly steps: readonly LegacyStep[];
  /** Why there are none, in words. @default packets are followed */
  readonly unseen?: string;
  catchUp(): void;
  close(): void;
}

/** Once the table stands, which no other trace has. Where it cannot be, what rules count has to do. */
function followLegacy(family: IpFamily, missed: () => void): FollowedLegacy {
  try {
    const { steps, catchUp, close } = watchLegacySteps(missed);
    try {
      const restore = divertLog(family);
      return {
        steps,
        catchUp,
        close() {
          restore();
          close();
        },
      };
    } catch (error) {
      close();
      throw error;
    }
  } catch (error) {
    return { steps: [], unseen: errorText(error), catchUp() {}, close() {} };
  }
}

/** Those under way: the kernel tells of them by number, and tells nothing of how they began. */
function noteKnownFlows(book: FlowBook, { tuples }: UnderstoodQuestion): void {
  closing(Netlink.open(NETLINK_NETFILTER), (netlink) => {
    for (const { destination: ip, port, protocol } of tuples) {
      for (const flow of listFlows(netlink, { family: ip.family, destination: { protocol, port, ip } }))
        book.known(flow);
    }
  });
}

function arm(nft: Nftables, { tuples }: UnderstoodQuestion): void {
  try {
    nft.commit(traceTable(tuples));
  } catch (cause) {
    // Others may not even name a table that has an owner (EPERM).
    const isOther = nft.listTables('inet').some(({ name }) => name === TRACE_TABLE);
    const errno = cause instanceof KernelError ? cause.errnoName : '';
    const why = isOther
      ? `another one runs (table inet ${TRACE_TABLE}): wait for its end`
      : `${errorText(cause)}${errno === 'EOPNOTSUPP' || errno === 'EINVAL' ? '. It needs Linux 5.12: look at counters instead' : ''}`;
    throw new NodeplaneError('ERR_NFTABLES', `Cannot begin a live trace: ${why}`, { cause });
  }
}

/** The rule as it stands now; undefined: it is gone, or it was a policy. */
function textOf(nft: Nftables, { family, table, chain: name, handle }: Drop): string | undefined {
  if (handle === undefined) return undefined;
  let rule: NftRule | undefined;
  try {
    rule = nft.listRules({ kind: 'chain', family, table, name }).find((one) => one.handle === handle);
  } catch {
    // Table or chain is gone.
    return undefined;
  }
  if (!rule) return undefined;
  const text = ruleText(rule.expressions, family);
  return rule.comment === undefined ? text : `${text} comment "${rule.comment}"`;
}

function firstOf(completed: Promise<void>, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    // It may be over before it began, while the agent was asked for names.
    if (signal?.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    void completed.then(end);
    signal?.addEventListener('abort', end, { once: true });
  });
}
