import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Environment } from '../../../cni/index.ts';
import type { Logger } from '../../logger.ts';
import type { SetAsideReason } from '../kept/set-aside.ts';
import type { PluginAnswer } from './protocol.ts';
import { Remarks } from './remarks.ts';

/** A request that was answered. */
export interface ServedRequest {
  readonly environment: Environment;
  /** What the plugin was given on standard input. */
  readonly config: string;
  readonly answer: PluginAnswer;
  readonly seconds: number;
  /** What the plugin had to say to people. */
  readonly remarks: string;
}

export interface RequestLogOptions {
  readonly registry: Registry;
  readonly logger: Logger;
  /** How many requests wait in the spool; asked at each scrape. */
  readonly kept: () => number;
}

const VERBS: ReadonlySet<string | undefined> = new Set(['ADD', 'DEL', 'CHECK', 'GC', 'STATUS', 'VERSION']);
/** 1 ms doubling to 32 s. */
const BUCKETS = Array.from({ length: 16 }, (_, i) => 2 ** i / 1000);

/** Registers the metrics of the CNI server; returns what counts a request and logs it under its pod's name. */
export function requestLog({ registry, logger, kept }: RequestLogOptions): (request: ServedRequest) => void {
  const registers = [registry];
  const requests = new Counter({
    name: 'nodeplane_cni_requests_total',
    help: 'CNI requests answered, by verb and CNI error code; code 0 is success.',
    labelNames: ['verb', 'code'],
    registers,
  });
  const durations = new Histogram({
    name: 'nodeplane_cni_request_duration_seconds',
    help: 'Seconds from a CNI request’s arrival to its answer, waiting for others included.',
    labelNames: ['verb'],
    buckets: BUCKETS,
    registers,
  });
  new Gauge({
    name: 'nodeplane_cni_kept_requests',
    help: 'DEL requests kept while no agent ran and not settled yet.',
    registers,
    collect() {
      this.set(kept());
    },
  });
  const said = new Remarks();
  return ({ environment, config, answer, seconds, remarks }) => {
    const { CNI_COMMAND: command, CNI_CONTAINERID: container, CNI_IFNAME: ifname } = environment;
    // Callers can invent verbs; a label must not grow with them.
    const verb = command !== undefined && VERBS.has(command) ? command : 'other';
    const failure = failureOf(answer);
    requests.inc({ verb, code: failure?.code ?? 0 });
    durations.observe({ verb }, seconds);
    const facts = { verb, pod: podOf(environment), container, ifname, ms: Math.round(seconds * 1000) };
    const fresh = said.fresh({ verb, config, failed: failure !== undefined, remarks });
    if (fresh !== '') logger.warn({ ...facts, remarks: fresh }, 'CNI request: the plugin remarks');
    if (failure) {
      const { code, msg: error, details } = failure;
      // Not as `msg`: that is the line's own, and JSON with two of them reads differently everywhere.
      logger.warn({ ...facts, code, error, details }, `CNI ${verb} failed`);
    } else logger[verb === 'ADD' || verb === 'DEL' || verb === 'GC' ? 'info' : 'debug'](facts, `CNI ${verb}`);
  };
}

/** Registers the metric of kept requests that will not be tried again; returns what counts one. */
export function setAsideCounter(registry: Registry): (reason: SetAsideReason) => void {
  const counter = new Counter({
    name: 'nodeplane_cni_set_aside_requests_total',
    help: 'Kept DEL requests that could not be settled and lie in the folder set-aside of the spool, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  });
  return (reason) => counter.inc({ reason });
}

/** The pod as Kubernetes' runtimes name it in CNI_ARGS, `namespace/name`; undefined when they do not. */
function podOf({ CNI_ARGS: args = '' }: Environment): string | undefined {
  const value = (key: string) => new RegExp(`(?:^|;)${key}=([^;]*)`).exec(args)?.[1];
  const [namespace, name] = [value('K8S_POD_NAMESPACE'), value('K8S_POD_NAME')];
  return namespace && name && `${namespace}/${name}`;
}

/** The error object an answer is, if it is one. */
function failureOf({ exitCode, stdout }: PluginAnswer): { code: number; msg: string; details?: string } | undefined {
  if (exitCode === 0) return undefined;
  const { code, msg, details } = JSON.parse(stdout) as { code: number; msg: string; details?: string };
  return { code, msg, ...(details && { details }) };
}
