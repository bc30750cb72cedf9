import { type Clock, type IpAddress, ipEquals } from '../../core/index.ts';
import type { Flow } from '../../netlink/conntrack/index.ts';

/**
 * What a question about the last minutes needs; older ones give way. Those that were not translated are kept apart: metrics sent
 * by UDP, which nobody answers, would push out the others.
 */
const UNANSWERED_KEPT = { translated: 256, untranslated: 64 } as const;

/** A connection or exchange that ended without a single packet back. */
export interface UnansweredFlow {
  /** When the kernel gave it up, by the clock's `now`: TCP some 120 s after the last try, UDP 30 s. */
  readonly at: number;
  /** IPPROTO_*. */
  readonly protocol: number;
  readonly source: IpAddress;
  readonly sourcePort: number;
  /** What was asked, before any translation. */
  readonly destination: IpAddress;
  readonly destinationPort: number;
  /** Who should have answered; undefined: it was not translated. */
  readonly endpoint: { readonly address: IpAddress; readonly port: number } | undefined;
}

/** Remembers the last flows that nobody answered, the newest last. */
export class UnansweredFlows {
  readonly #clock: Clock;
  readonly #translated: UnansweredFlow[] = [];
  readonly #untranslated: UnansweredFlow[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add({ protocol, original, reply }: Flow): void {
    const { source, sourcePort, destination, destinationPort } = original;
    const isTranslated = !ipEquals(destination, reply.source) || destinationPort !== reply.sourcePort;
    const endpoint = isTranslated ? { address: reply.source, port: reply.sourcePort } : undefined;
    const kept = isTranslated ? this.#translated : this.#untranslated;
    kept.push({ at: this.#clock.now(), protocol, source, sourcePort, destination, destinationPort, endpoint });
    if (kept.length > UNANSWERED_KEPT[isTranslated ? 'translated' : 'untranslated']) kept.shift();
  }

  /** The newest last. */
  get kept(): readonly UnansweredFlow[] {
    return [...this.#translated, ...this.#untranslated].sort((a, b) => a.at - b.at);
  }
}
