import { plainText } from '../../core/index.ts';
import type { DropReport, FlowReport, IpvsServerReport, TraceReport } from './trace-report.ts';

/** What stands beside an address; undefined: nothing is known. */
export type NameOf = (addressPort: string) => string | undefined;

const VERDICTS: Readonly<Record<TraceReport['verdict'], string>> = {
  works: 'WORKS',
  fails: 'FAILS',
  unknown: 'UNKNOWN',
};
/** Destinations of a virtual server on one line. */
const MOST_DESTINATIONS = 4;
/** Flows on one screen; the JSON has all. */
const MOST_FLOWS = 12;

/** For people: the verdict, then a line a flow. Every name is text on the terminal. Pure. */
export function traceText(report: TraceReport, nameOf: NameOf): string {
  const { question, verdict, flows, probe, incomplete, legacyDrops, ipvs, ipvsServers, dropReasons, tookMs } = report;
  const named = (text: string) => {
    const name = nameOf(text);
    return name === undefined ? text : `${text} (${name})`;
  };
  const to = `${question.service ? `${question.service} ` : ''}${question.destinations.join(', ')}`;
  const more = flows.length - MOST_FLOWS;
  return [
    `${VERDICTS[verdict]}  ${question.source} -> ${to}, watched for ${secondsText(tookMs)}`,
    ...(flows.length === 0 ? [nothingText(report)] : []),
    ...flows.slice(0, MOST_FLOWS).map((flow) => `  ${flowText(flow, named)}`),
    ...(more > 0 ? [`  and ${more} more flows (-o json)`] : []),
    ...(probe ? [`  probe from ${probe.source}: ${probe.result}`] : []),
    ...legacyDrops.map(
      ({ table, rule, packets }) =>
        `  legacy iptables, table ${table}: ${packets} packets, not only these, met ${rule}`,
    ),
    ...ipvs.map(({ client, server, state }) => `  IPVS: ${client} -> ${named(server)}, ${state}`),
    ...ipvsServers.map((server) => `  ${serverText(server, named)}`),
    ...(verdict === 'fails' ? [`  why: ${explainCommand(question)}`] : []),
    ...(verdict === 'fails' && dropReasons !== null ? [`  drop reasons are not told: ${dropReasons}`] : []),
    ...incomplete.map((why) => `  incomplete: ${why}`),
  ]
    .map((line) => `${plainText(line)}\n`)
    .join('');
}

/** The command that says why, to be pasted. */
function explainCommand({ source, destinations }: TraceReport['question']): string {
  const [, destination = '', protocol = ''] = /^(.*)\/(.*)$/.exec(destinations[0] ?? '') ?? [];
  const from = source === 'any' ? '' : ` --from ${source}`;
  return `nodeplane explain ${destination}${from}${protocol === 'tcp' ? '' : ` --proto ${protocol}`}`;
}

function nothingText({ question }: TraceReport): string {
  const who = question.source === 'any' ? 'anybody' : question.source;
  return `  Nothing from ${who} to there reached this node's rules: it was not sent, went elsewhere, or is handled before them (another datapath)`;
}

/** `10.244.1.7:40222 SYN -> DNAT 10.244.1.9:8080 -> vethc31a; no reply in 3 s` */
function flowText(flow: FlowReport, named: (text: string) => string): string {
  const { source, destination, old, flags, endpoint, maskedAs, oif } = flow;
  const steps = [
    [named(source), flags].filter(Boolean).join(' '),
    endpoint === null ? named(destination) : `DNAT ${named(endpoint)}`,
    ...(maskedAs === null ? [] : [`seen as ${maskedAs}`]),
    ...(oif === null ? [] : [oif]),
  ];
  const prefix = old ? 'under way already: ' : '';
  return `${prefix}${steps.join(' -> ')}; ${fateText(flow)}`;
}

function fateText(flow: FlowReport): string {
  const { kernelDrop } = flow;
  const fate = plainFateText(flow);
  return kernelDrop === null ? fate : `${fate}; dropped: ${kernelDrop.reason} at ${kernelDrop.place}`;
}

function plainFateText({ fate, drop, lostIn, replyFlags, answeredAfterMs, watchedMs }: FlowReport): string {
  const after = answeredAfterMs === null ? '' : ` after ${millisecondsText(answeredAfterMs)}`;
  switch (fate) {
    case 'answered':
      return `answered${replyFlags === '' ? '' : ` with ${replyFlags}`}${after}`;
    case 'refused':
      return `refused with ${replyFlags}${after}`;
    case 'dropped':
      return `dropped ${drop ? dropText(drop) : ''}`;
    case 'reply-dropped':
      return `the reply was dropped ${drop ? dropText(drop) : ''}`;
    case 'lost':
      return `lost ${lostIn}`;
    case 'reply-lost':
      return `the reply was lost ${lostIn}`;
    case 'no-reply':
      return `no reply in ${secondsText(watchedMs)}`;
  }
}

/** `IPVS 10.96.0.12:80/tcp, for anybody: 1 connection, 3 packets in, 2 out; 10.244.1.9:8080 weight 1, active 0 -> 1, inactive 2 -> 2` */
function serverText(
  { server, connections, packetsIn, packetsOut, destinations }: IpvsServerReport,
  named: (text: string) => string,
): string {
  const counted = `${connections} connections, ${packetsIn} packets in, ${packetsOut} out`;
  const told = destinations.slice(0, MOST_DESTINATIONS).map(({ address, weight, active, inactive }) => {
    return `${named(address)} weight ${weight}, active ${active.join(' -> ')}, inactive ${inactive.join(' -> ')}`;
  });
  const more = destinations.length - MOST_DESTINATIONS;
  const rest = more > 0 ? [`${more} more`] : [];
  return [`IPVS ${server}, for anybody, by its last count: ${counted}`, ...told, ...rest].join('; ');
}

function dropText({ family, table, chain, handle, rule }: DropReport): string {
  const where = `in table ${family} ${table}, chain ${chain}`;
  if (handle === null) return `by the policy of a chain, ${where}`;
  return `${where}, by rule ${handle}${rule === null ? '' : `: ${rule}`}`;
}

function secondsText(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1).replace(/\.0$/, '')} s`;
}

function millisecondsText(ms: number): string {
  return ms < 1 ? 'less than 1 ms' : `${Math.round(ms)} ms`;
}
