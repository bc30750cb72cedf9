import type { Registry } from 'prom-client';
import { plainText } from '../../core/index.ts';
import type { ProxyHealth, ProxyMode } from '../../proxy/index.ts';
import { metricsText } from '../metrics/metrics-text.ts';
import { SliMetrics } from '../metrics/sli-metrics.ts';
import type { Readiness } from '../part.ts';
import { type HttpAnswer, textAnswer } from './http-listener.ts';
import type { Pages } from './http-server.ts';
import { flagzPage, negotiateText, type StatuszFacts, statuszPage } from './zpages.ts';

/** What the health server's pages are made of. */
export interface HealthPagesOptions {
  readonly health: Pick<ProxyHealth, 'healthz' | 'livez'>;
  /** Called for each answer (`ProxyMetrics.countHealthAnswer`). */
  readonly countAnswer: (path: 'healthz' | 'livez', status: number) => void;
  /** How the agent's parts stand. */
  readonly readiness: () => readonly Readiness[];
}

/**
 * The pages of the health server (port 10256): /healthz for load balancers, /livez for the kubelet, both as kube-proxy has
 * them; /readyz, which it has not, for a rollout.
 */
export function healthPages({ health, countAnswer, readiness }: HealthPagesOptions): Pages {
  const page = (path: 'healthz' | 'livez') => (): HttpAnswer => {
    const answer = health[path]();
    countAnswer(path, answer.status);
    return answer;
  };
  return { '/healthz': page('healthz'), '/livez': page('livez'), '/readyz': () => readyPage(readiness()) };
}

/** A line a part, in the form of the API server's /readyz?verbose. */
function readyPage(parts: readonly Readiness[]): HttpAnswer {
  const isReady = parts.every(({ reason }) => reason === undefined);
  const lines = parts.map(({ name, reason }) =>
    reason === undefined ? `[+]${name} ok` : `[-]${name} failed: ${plainText(reason)}`,
  );
  return textAnswer(isReady ? 200 : 503, [...lines, `readyz check ${isReady ? 'passed' : 'failed'}`, ''].join('\n'));
}

/** What the metrics server's pages are made of; functions are asked for each request. */
export interface MetricsPagesOptions {
  readonly mode: ProxyMode;
  readonly registry: Registry;
  /** The effective configuration as one JSON object under its API group (`writeConfigz`). */
  readonly configz: () => string;
  /** All flags with their values as text. @default no page (feature gate ComponentFlagz) */
  readonly flagz?: () => Readonly<Record<string, string>>;
  /** @default no page (feature gate ComponentStatusz) */
  readonly statusz?: () => Omit<StatuszFacts, 'component' | 'paths'>;
  /** Pages of others: those of --profiling, of the agent's parts. @default none */
  readonly more?: Pages;
  /** What /flagz and /statusz call us. */
  readonly component: string;
}

/**
 * The pages of the metrics server (port 10249), at kube-proxy's paths. Its /debug/flags, which changes the verbosity of a Go
 * program's log, is left out.
 */
export function metricsPages(options: MetricsPagesOptions): Pages {
  const { mode, registry, configz, flagz, statusz, more, component } = options;
  const slis = new SliMetrics();
  const pages: Pages = {
    '/healthz': ({ query }) => {
      slis.succeeded('ping');
      return textAnswer(200, query.has('verbose') ? '[+]ping ok\nhealthz check passed\n' : 'ok');
    },
    '/healthz/ping': () => textAnswer(200, 'ok'),
    '/proxyMode': () => textAnswer(200, mode),
    '/metrics': async () => ({
      status: 200,
      headers: { 'Content-Type': registry.contentType },
      body: await metricsText(registry),
    }),
    '/metrics/slis': slis.page,
    '/configz': () => ({ ...textAnswer(200, configz()), headers: JSON_HEADERS }),
    ...more,
    ...(flagz && { '/flagz': (request) => negotiateText(request, () => flagzPage(component, flagz())) }),
    ...(statusz && {
      '/statusz': (request) =>
        negotiateText(request, () => statuszPage({ ...statusz(), component, paths: Object.keys(pages) })),
    }),
  };
  return pages;
}

const JSON_HEADERS = { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff' };
