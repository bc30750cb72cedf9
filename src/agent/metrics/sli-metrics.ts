import { Counter, Gauge, Registry } from 'prom-client';
import { type HttpAnswer, type HttpRequest, textAnswer } from '../http/http-listener.ts';

/**
 * The service level indicators of KEP-3466 on /metrics/slis: how the checks of /healthz went, each time they were asked.
 * They have a registry of their own, so that they can be scraped often and cheaply.
 */
export class SliMetrics {
  readonly #registry = new Registry();
  readonly #current: Gauge;
  readonly #total: Counter;

  constructor() {
    const registers = [this.#registry];
    this.#current = new Gauge({
      name: 'kubernetes_healthcheck',
      help: '[STABLE] This metric records the result of a single healthcheck.',
      labelNames: ['name', 'type'],
      registers,
    });
    this.#total = new Counter({
      name: 'kubernetes_healthchecks_total',
      help: '[STABLE] This metric records the results of all healthcheck.',
      labelNames: ['name', 'status', 'type'],
      registers,
    });
  }

  /** Takes in that the check `name` of /healthz went well. */
  succeeded(name: string): void {
    this.#current.set({ name, type: 'healthz' }, 1);
    this.#total.inc({ name, status: 'success', type: 'healthz' });
  }

  /** The page: the indicators, or with DELETE the end of all of them. */
  readonly page = async ({ method }: Pick<HttpRequest, 'method'>): Promise<HttpAnswer> => {
    if (method === 'DELETE') {
      this.#registry.resetMetrics();
      return textAnswer(200, 'metrics reset\n');
    }
    const body = await this.#registry.metrics();
    return { status: 200, headers: { 'Content-Type': this.#registry.contentType }, body };
  };
}
