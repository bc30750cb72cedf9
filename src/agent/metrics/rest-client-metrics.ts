import { Counter, Histogram, type Registry } from 'prom-client';

/** One request to the API server, as far as metrics go. */
export interface RestClientRequest {
  /** The HTTP method. */
  readonly verb: string;
  /** `host:port` of the server. */
  readonly host: string;
  /** The HTTP status; `<error>` when there was no answer. */
  readonly code: number | string;
  /** Until the answer was complete; undefined for a watch, which has no such time and which client-go counts only. */
  readonly seconds: number | undefined;
}

/** As in Kubernetes 1.36: API requests take milliseconds, their time limit is a minute. */
const BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

/** Registers the metrics of the API client, under client-go's names, and returns what to call for each request. */
export function restClientObserver(registry: Registry): (request: RestClientRequest) => void {
  const registers = [registry];
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: '[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.',
    labelNames: ['code', 'method', 'host'],
    registers,
  });
  const durations = new Histogram({
    name: 'rest_client_request_duration_seconds',
    help: '[ALPHA] Request latency in seconds. Broken down by verb, and host.',
    labelNames: ['verb', 'host'],
    buckets: BUCKETS,
    registers,
  });
  return ({ verb, host, code, seconds }) => {
    requests.inc({ code: String(code), method: verb, host });
    if (seconds !== undefined) durations.observe({ verb, host }, seconds);
  };
}
