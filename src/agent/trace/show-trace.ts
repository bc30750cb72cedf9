import { jsonText, NodeplaneError } from '../../core/index.ts';
import { exec, needCapability } from '../../sys/index.ts';
import { askStatus } from '../status/show/ask-status.ts';
import type { Status } from '../status/status.ts';
import { probe } from './probe.ts';
import { type TraceQuestion, type UnderstoodQuestion, understand } from './question.ts';
import { runTrace } from './run-trace.ts';
import type { TraceReport } from './trace-report.ts';
import { type NameOf, traceText } from './trace-text.ts';

/** The longest trace: each rule that a traced packet meets is a message of the kernel. */
const MOST_SECONDS = 600;

export interface ShowTraceOptions extends TraceQuestion {
  /** `10s`, `2m`, `500ms`. */
  readonly live: string;
  /** Connect from the pod that has the source address. */
  readonly probe: boolean;
  /** What --probe sends by UDP. */
  readonly payload: string | undefined;
  readonly json: boolean;
  /** The agent's metrics port, asked for Services by name. */
  readonly address: string;
  readonly signal?: AbortSignal | undefined;
}

export interface ShownTrace {
  readonly stdout: string;
  /** 0: a flow was answered; 1: one was seen, and fails; 2: nothing was seen, or not enough. */
  readonly exitCode: 0 | 1 | 2;
}

const EXIT: Readonly<Record<TraceReport['verdict'], ShownTrace['exitCode']>> = { works: 0, fails: 1, unknown: 2 };

/**
 * `nodeplane trace`: what becomes of packets on this node, as it happens. The agent is asked for names alone.
 *
 * @throws ERR_CONFIG for a question that cannot be understood, or (with `capability` among its facts) without
 *   CAP_NET_ADMIN, ERR_STATUS_AGENT when a Service is named and no agent answers, what `runTrace` and `probe` throw
 */
export async function showTrace(options: ShowTraceOptions): Promise<ShownTrace> {
  const { json, address, signal } = options;
  const durationMs = durationOf(options.live);
  const find = async (query: string) => (await askStatus(address, { query, page: 1 })).services.services;
  const question = await understand(options, find, address);
  const attempt = probeOf(options, question, durationMs);
  needCapability('NET_ADMIN', 'trace packets');
  if (attempt) needCapability('SYS_ADMIN', 'connect from a pod');
  const report = await runTrace({ question, durationMs, probe: attempt, exec, signal });
  const exitCode = EXIT[report.verdict];
  if (json) return { stdout: jsonText(report), exitCode };
  return { stdout: traceText(report, await namesFor(report, find)), exitCode };
}

function probeOf({ probe: wanted, payload, protocol }: ShowTraceOptions, { tuples }: UnderstoodQuestion, ms: number) {
  if (!wanted) return undefined;
  const [tuple] = tuples;
  const source = tuple?.source;
  if (!tuple || !source) throw new NodeplaneError('ERR_CONFIG', '--probe needs the address to connect from');
  if (protocol !== 'tcp' && (protocol !== 'udp' || payload === undefined)) {
    throw new NodeplaneError('ERR_CONFIG', '--probe connects by tcp, or sends --payload by udp');
  }
  return (signal: AbortSignal) => probe({ tuple: { ...tuple, source }, payload: payload ?? '', timeoutMs: ms, signal });
}

/**
 * Names of Services beside addresses, as far as the agent knows any: without it there are just addresses. An endpoint is named where
 * packets were translated to it: who asks a pod itself uses no Service.
 */
export async function namesFor(
  report: TraceReport,
  find: (query: string) => Promise<Status['services']['services']>,
): Promise<NameOf> {
  const names = new Map<string, string>();
  const asked = report.question.service;
  const protocol = report.question.destinations[0]?.split('/').at(-1);
  const translatedTo = new Set(report.flows.map(({ endpoint }) => endpoint));
  const wanted = report.flows.flatMap(({ destination, endpoint }) => [destination, ...(endpoint ? [endpoint] : [])]);
  for (const text of [...new Set(wanted)].slice(0, MOST_NAMES)) {
    try {
      const ip = text.replace(/^\[?(.*?)\]?:\d+$/, '$1');
      const port = Number(/\d+$/.exec(text)?.[0]);
      const found = (await find(ip)).filter(({ ports }) =>
        ports.some(
          (one) =>
            one.protocol.toLowerCase() === protocol &&
            ((one.port === port && [one.clusterIp, ...one.externalIps, ...one.loadBalancerVips].includes(ip)) ||
              (translatedTo.has(text) &&
                one.endpoints.some((endpoint) => endpoint.address === ip && endpoint.port === port))),
        ),
      );
      // Several may lead to one endpoint.
      const name = (found.find((one) => one.name === (asked ?? names.values().next().value)) ?? found[0])?.name;
      if (name !== undefined) names.set(text, name);
    } catch {
      // No agent here, or one without Services.
      break;
    }
  }
  return (text) => names.get(text);
}

/** Each is a question to the agent. */
const MOST_NAMES = 8;

/** Milliseconds of `10s`. Throws ERR_CONFIG. */
export function durationOf(text: string): number {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text) ?? [];
  const ms = Number(digits) * (unit === 'ms' ? 1 : unit === 's' ? 1000 : 60_000);
  if (ms > 0 && ms <= MOST_SECONDS * 1000) return ms;
  throw new NodeplaneError(
    'ERR_CONFIG',
    `--live is a time as 10s, 500ms or 2m, at most ${MOST_SECONDS} s, found "${text}"`,
  );
}
