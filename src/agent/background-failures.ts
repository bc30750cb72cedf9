import { Counter, type Registry } from 'prom-client';
import { BackgroundFailure } from '../core/index.ts';
import type { ProxyEvent } from '../proxy/index.ts';
import type { Logger } from './logger.ts';

/** What the process tells of itself; `process`, but for tests. */
export interface ProcessEvents {
  on(event: string, listener: (error: Error) => void): unknown;
  removeAllListeners(event: string): unknown;
  exit(code: number): void;
}

/**
 * Logs and counts what failed where nobody awaits it, and decides what the process makes of it.
 *
 * Work in the background ends alone: the node's traffic goes on by what is in the kernel, and whatever is periodic comes
 * again. So does a promise that was rejected with nobody there: the work it stood for is lost, and all else is as it was.
 * Only an exception that nobody caught ends the process, because it left some code half-way and nobody knows which state;
 * a supervisor starts it anew, and the rules stay.
 */
export class BackgroundFailures {
  readonly #logger: Logger;
  readonly #counter = new Counter({
    name: 'nodeplane_background_failures_total',
    help: 'Failures of work beside the syncs: timers, events, checks. The log says what failed, and it is tried again in its time.',
    labelNames: ['work'],
    registers: [],
  });

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Listens to the process, in place of Node itself, which would print warnings and end it for a rejection. */
  listen(events: ProcessEvents = process): void {
    events.removeAllListeners('warning');
    events.on('warning', (warning) => {
      if (warning instanceof BackgroundFailure) this.#failed(warning.work, warning.cause);
      else this.#logger.warn({ err: warning }, 'Warning of the runtime');
    });
    events.on('unhandledRejection', (error) => this.#failed('unknown', error));
    events.on('uncaughtException', (error) => {
      this.#logger.fatal({ err: error }, 'An exception nobody caught: the agent ends, the rules stay in place');
      events.exit(1);
    });
  }

  /** Shows the count among the metrics of `registry`. */
  register(registry: Registry): void {
    registry.registerMetric(this.#counter);
  }

  /** A ProxyObserver: counts what the proxy tells, and another observer logs. */
  readonly observe = (event: ProxyEvent): void => {
    if (event.kind === 'verifyFailed') this.#counter.inc({ work: 'verification' });
    if (event.kind === 'workFailed') this.#counter.inc({ work: event.work });
  };

  #failed(work: string, error: unknown): void {
    this.#counter.inc({ work });
    this.#logger.error({ work, err: error }, 'Work in the background failed; the agent goes on');
  }
}
