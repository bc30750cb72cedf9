import { formatIp, formatIpPort, protocolText } from '../../core/index.ts';
import type { IpvsConnection } from '../../netlink/ipvs/index.ts';
import type { FlowBook } from './flow-book.ts';
import type { LegacyDrop } from './legacy/legacy-steps.ts';
import type { CountedLegacyRule } from './legacy/saved-tables.ts';
import type { ProbeOutcome } from './probe.ts';
import { tupleText, type UnderstoodQuestion } from './question.ts';
import {
  type DropReport,
  type FlowReport,
  type IpvsServerReport,
  TRACE_SCHEMA,
  type TraceReport,
} from './trace-report.ts';
import { type Drop, fateOf, kernelDropOf, type TracedFlow, type Way } from './traced-flow.ts';

/** When TCP sends its first packet again: before that it is too early to say that nobody answers. */
const SOON_MS = 1000;

/** What a trace brought together. Times are monotonic milliseconds. */
export interface TraceFindings {
  readonly question: UnderstoodQuestion;
  readonly book: FlowBook;
  readonly began: number;
  readonly ended: number;
  readonly probe: ProbeOutcome | undefined;
  readonly lost: boolean;
  readonly legacy: {
    readonly counted: readonly CountedLegacyRule[];
    /** What of it took a packet that is lost in a hook. */
    readonly dropOf: (flow: TracedFlow, direction: 'there' | 'back') => LegacyDrop | undefined;
    /** Why packets could not be followed there; undefined: they were, or there are no rules. */
    readonly unseen: string | undefined;
  };
  readonly ipvs: readonly IpvsConnection[];
  readonly ipvsServers: readonly IpvsServerReport[];
  /** Why drop reasons are not known; undefined: they are. */
  readonly dropReasons: string | undefined;
  readonly linkName: (index: number) => string;
  readonly ruleText: (drop: Drop) => string | undefined;
}

/** The report of a trace. Pure, but for what `linkName` and `ruleText` look up. */
export function makeReport(findings: TraceFindings): TraceReport {
  const { question, book, began, ended, probe, lost, legacy, ipvs, ipvsServers, dropReasons } = findings;
  const flows = book.flows.map((flow) => reportFlow(flow, findings));
  // Others go on while the one ends that ends the trace.
  const decided = flows.filter(({ fate, watchedMs }) => fate !== 'no-reply' || watchedMs >= SOON_MS);
  const failed = decided.some(({ fate }) => fate !== 'answered');
  const incomplete = [
    ...(lost ? ['the kernel told more than could be read (ENOBUFS): events are missing'] : []),
    ...(book.overflowed ? ['more flows were seen than are kept'] : []),
    ...(legacy.unseen === undefined
      ? []
      : [`of the rules of legacy iptables only what they count is known: ${legacy.unseen}`]),
  ];
  const { source } = question.tuples[0]!;
  return {
    schema: TRACE_SCHEMA,
    question: {
      source: source ? formatIp(source) : 'any',
      destinations: question.tuples.map(tupleText),
      service: question.service ?? null,
    },
    // An answer was seen for certain; that none came may be what was lost.
    verdict: decided.length === 0 || (failed && lost) ? 'unknown' : failed ? 'fails' : 'works',
    tookMs: Math.round(ended - began),
    flows,
    probe: probe ?? null,
    incomplete,
    // Who counted says less than who did it.
    legacyDrops: flows.some((flow) => flow.legacyDrop) ? [] : legacy.counted,
    ipvsServers,
    dropReasons: dropReasons ?? null,
    ipvs: ipvs.map(({ client, clientPort, server, serverPort, state }) => ({
      client: formatIpPort(client, clientPort),
      server: formatIpPort(server, serverPort),
      state,
    })),
  };
}

function reportFlow(flow: TracedFlow, { ended, linkName, ruleText, legacy }: TraceFindings): FlowReport {
  const { original, endpoint, maskedAs, there, back, answeredAt, at } = flow;
  const fate = fateOf(flow);
  const drop = fate === 'dropped' ? there.drop : fate === 'reply-dropped' ? back.drop : undefined;
  const lost = fate === 'lost' ? 'there' : fate === 'reply-lost' ? 'back' : undefined;
  const legacyDrop = lost && legacy.dropOf(flow, lost);
  const name = (index: number | undefined) => (index === undefined ? null : linkName(index));
  return {
    protocol: protocolText(flow.protocol),
    source: formatIpPort(original.source, original.sourcePort),
    destination: formatIpPort(original.destination, original.destinationPort),
    old: flow.old,
    fate,
    flags: there.flags,
    iif: name(there.iif),
    oif: name(there.oif),
    endpoint: endpoint ? formatIpPort(endpoint.address, endpoint.port) : null,
    maskedAs: maskedAs ? formatIp(maskedAs) : null,
    lostIn: lost ? lostText(flow[lost], legacyDrop) : null,
    legacyDrop: legacyDrop ?? null,
    replyFlags: back.flags,
    answeredAfterMs: answeredAt === undefined ? null : Math.round((answeredAt - at) * 10) / 10,
    watchedMs: Math.round(ended - at),
    drop: drop ? reportDrop(drop, ruleText(drop)) : null,
    kernelDrop: kernelDropOf(flow) ?? null,
  };
}

function reportDrop({ handle, ...place }: Drop, rule: string | undefined): DropReport {
  return { ...place, handle: handle ?? null, rule: rule ?? null };
}

/** Between two looks at a packet: who took it, or may have. */
function lostText({ last }: Way, taken: LegacyDrop | undefined): string {
  if (!last) return '';
  const { hook, late } = last;
  if (taken) {
    const { table, chain, rule, text } = taken;
    const what = text ?? (rule === null ? 'its policy' : `rule ${rule} of then`);
    const number = rule === null || text === null ? '' : `rule ${rule}: `;
    return `in hook ${hook}, by legacy iptables, table ${table}, chain ${chain}: ${number}${what}`;
  }
  if (!late) return `in hook ${hook}, by none of nf_tables' rules`;
  return hook === 'prerouting' || hook === 'output' || hook === 'forward'
    ? `behind hook ${hook}: by a route lookup (no route, forwarding off, rp_filter), or by what nf_tables does not see`
    : `behind hook ${hook}`;
}
