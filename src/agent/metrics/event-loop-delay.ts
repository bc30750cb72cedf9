import { Histogram, type Registry } from 'prom-client';
import type { Clock } from '../../core/index.ts';
import type { ProxyObserver } from '../../proxy/index.ts';

const TICK_MS = 10;
/** How long after the last sign of work it is still looked: until the first sync, where signs are far apart, and from then on. */
const QUIET_TICKS_AT_START = 25;
const QUIET_TICKS = 3;

/**
 * Measures by how much the event loop is late, as long as there is work: ten milliseconds after ten milliseconds are asked
 * for, and what is more is observed. Without work nothing ticks: prom-client's own measure (perf_hooks.monitorEventLoopDelay),
 * which never rests, wakes the processor a hundred times a second, which was nine tenths of what an agent at rest cost. A look
 * costs a tenth of a millisecond or more, so there are few after each change: with a quarter of a second of them they
 * were half of what two changes a second cost.
 */
export class EventLoopDelay {
  readonly #clock: Clock;
  readonly #histogram: Histogram;
  #syncs = 0;
  #quietTicks = 0;
  #mostQuietTicks = QUIET_TICKS_AT_START;
  #isTicking = false;
  #isStopped = false;

  constructor(registry: Registry, clock: Clock) {
    this.#clock = clock;
    this.#histogram = new Histogram({
      name: 'nodeplane_event_loop_delay_seconds',
      help: 'How late the agent’s event loop was, each time it was looked at while there was work',
      buckets: [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5],
      registers: [registry],
    });
    // The loop's first turn is the program's loading and the making of its parts: nobody can be waiting yet.
    clock.setTimer(() => this.stir(), 0);
  }

  /** Says that there is work: an object changed. */
  stir(): void {
    this.#quietTicks = 0;
    if (this.#isTicking || this.#isStopped) return;
    this.#isTicking = true;
    this.#tick();
  }

  /** A sync is work from its beginning to its end. */
  readonly observe: ProxyObserver = ({ kind }) => {
    if (kind === 'syncStarted') this.#syncs++;
    if (kind === 'syncFinished' || kind === 'syncFailed') this.#syncs--;
    if (kind === 'syncFinished') this.#mostQuietTicks = QUIET_TICKS;
    this.stir();
  };

  stop(): void {
    this.#isStopped = true;
  }

  #tick(): void {
    const due = this.#clock.now() + TICK_MS;
    this.#clock.setTimer(() => {
      this.#histogram.observe(Math.max(0, this.#clock.now() - due) / 1000);
      if (this.#syncs === 0) this.#quietTicks++;
      this.#isTicking = this.#quietTicks < this.#mostQuietTicks && !this.#isStopped;
      if (this.#isTicking) this.#tick();
    }, TICK_MS);
  }
}
