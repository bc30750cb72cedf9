import { formatIp, formatIpPort } from '../../core/index.ts';
import type { IpvsConnection } from '../../netlink/ipvs/index.ts';
import type { FlowBook } from './flow-book.ts';
import type { CountedLegacyRule } from './legacy-counters.ts';
import type { ProbeOutcome } from './probe.ts';
import { protocolText, tupleText, type UnderstoodQuestion } from './question.ts';
import {
  type DropReport,
  type FlowReport,
  type IpvsServerReport,
  TRACE_SCHEMA,
  type TraceReport,
} from './trace-report.ts';
import { type Drop, fateOf, kernelDropOf, type TracedFlow, type Way } from './traced-flow.ts';

/** What a trace brought together. Times are monotonic milliseconds. */
export interface TraceFindings {
  readonly question: UnderstoodQuestion;
  readonly book: FlowBook;
  readonly began: number;
  readonly ended: number;
  readonly probe: ProbeOutcome | undefined;
  readonly lost: boolean;
  readonly legacyDrops: readonly CountedLegacyRule[];
  readonly ipvs: readonly IpvsConnection[];
  readonly ipvsServers: readonly IpvsServerReport[];
  /** Why drop reasons are not known; undefined: they are. */
  readonly dropReasons: string | undefined;
  readonly linkName: (index: number) => string;
  readonly ruleText: (drop: Drop) => string | undefined;
}

/** The report of a trace. Pure, but for what `linkName` and `ruleText` look up. */
export function makeReport(findings: TraceFindings): TraceReport {
  const { question, book, began, ended, probe, lost, legacyDrops, ipvs, ipvsServers, dropReasons } = findings;
  const flows = book.flows.map((flow) => reportFlow(flow, findings));
  const failed = flows.some(({ fate }) => fate !== 'answered');
  const incomplete = [
    ...(lost ? ['the kernel told more than could be read (ENOBUFS): events are missing'] : []),
    ...(book.overflowed ? ['more flows were seen than are kept'] : []),
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
    verdict: flows.length === 0 || (failed && lost) ? 'unknown' : failed ? 'fails' : 'works',
    tookMs: Math.round(ended - began),
    flows,
    probe: probe ?? null,
    incomplete,
    legacyDrops,
    ipvsServers,
    dropReasons: dropReasons ?? null,
    ipvs: ipvs.map(({ client, clientPort, server, serverPort, state }) => ({
      client: formatIpPort(client, clientPort),
      server: formatIpPort(server, serverPort),
      state,
    })),
  };
}

function reportFlow(flow: TracedFlow, { ended, linkName, ruleText }: TraceFindings): FlowReport {
  const { original, endpoint, maskedAs, there, back, answeredAt, at } = flow;
  const fate = fateOf(flow);
  const drop = fate === 'dropped' ? there.drop : fate === 'reply-dropped' ? back.drop : undefined;
  const lost = fate === 'lost' ? there : fate === 'reply-lost' ? back : undefined;
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
    lostIn: lost ? lostText(lost) : null,
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

/** Between two looks at a packet: who may have taken it. */
function lostText({ last }: Way): string {
  if (!last) return '';
  const { hook, late } = last;
  if (!late) return `in hook ${hook}, by none of nf_tables' rules`;
  return hook === 'prerouting' || hook === 'output' || hook === 'forward'
    ? `behind hook ${hook}: by a route lookup (no route, forwarding off, rp_filter), or by what nf_tables does not see`
    : `behind hook ${hook}`;
}
