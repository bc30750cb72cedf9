import { ipEquals, type Timer } from '../../../core/index.ts';
import type { Flow } from '../../../netlink/conntrack/index.ts';
import type { PlanDelta } from '../../../proxy/index.ts';
import { FlowCleaner, type FlowCleanerOptions, type FlowCleaning, type NodePortAddresses } from './flow-cleaner.ts';

/**
 * Who is going to answer has done so by then; a client's kernel sends its first packet again after 1, 3 and 7 s. One look is as
 * long from the next, at least.
 */
const WAIT_MS = 1000;
/**
 * Each look has the kernel go through all of the table, empty places too: 10 ms for the 262,144 that Linux makes where there are 4 GiB
 * of memory. While endpoints come and go, and nothing was found that waits, one look is this many times what it took from the next.
 */
const RESTS = 300;
/** The longest of these rests, and how long a look waits after one that failed. */
const LONG_REST_MS = 10_000;

export interface UnansweredCleanerOptions extends Omit<FlowCleanerOptions, 'unanswered'> {
  /** Called after each cleaning. */
  readonly cleaned: (cleaning: FlowCleaning) => void;
}

/**
 * Frees connections that wait for an answer where nobody is: begun before the rules of their Service were there, or led to an
 * endpoint that has gone since. Conntrack leads their next packets the same way until the client gives up, after two minutes
 * with the defaults of Linux; once it has forgotten them, the next packet finds an endpoint.
 *
 * The first kind ends at once: its next packets are lost until then. The second kind may be answered still: it ends when it is
 * found a second time. Nothing is judged in the middle of a sync, when some rules are those of before.
 */
export class UnansweredCleaner {
  readonly #options: UnansweredCleanerOptions;
  readonly #cleaner: FlowCleaner;
  #nodePortAddresses: NodePortAddresses = () => () => false;
  #timer: Timer | undefined;
  #isSyncing = false;
  /** Something has come into force since the last look. */
  #isChanged = false;
  #isStopped = false;
  /** Not before these, on the clock: a look that somebody may be waiting for, and any other. */
  #next = { urgent: Number.NEGATIVE_INFINITY, ordinary: Number.NEGATIVE_INFINITY };
  #due = Number.NEGATIVE_INFINITY;
  /** When flows were found that may be answered still, by ID. */
  #found = new Map<number, number>();
  #work: Promise<void> = Promise.resolve();

  constructor(options: UnansweredCleanerOptions) {
    this.#options = options;
    this.#cleaner = new FlowCleaner({ ...options, unanswered: true });
  }

  /** Says what a sync is going to change. */
  note(delta: PlanDelta): void {
    this.#isSyncing = true;
    this.#cleaner.note(delta);
  }

  /** Says that all that was noted is in force. */
  committed(nodePortAddresses: NodePortAddresses): void {
    this.#isSyncing = false;
    this.#isChanged = true;
    this.#nodePortAddresses = nodePortAddresses;
    this.#lookInTime();
  }

  /** Resolves when nothing is going on any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#work.catch(() => {});
  }

  /** What began before its Service was there, or was found to wait, is looked for soon. */
  #lookInTime(): void {
    if (this.#isStopped) return;
    const isUrgent = this.#found.size > 0 || this.#cleaner.hasNewPorts();
    const { clock } = this.#options;
    const now = clock.now();
    const due = Math.max(now, isUrgent ? this.#next.urgent : this.#next.ordinary);
    if (this.#timer && this.#due <= due) return;
    this.#timer?.cancel();
    this.#due = due;
    this.#timer = clock.setTimer(() => this.#begin(), due - now);
  }

  #begin(): Promise<void> {
    this.#timer = undefined;
    // `committed` will ask again.
    const look = () => this.#look();
    // One that failed must not end the later ones.
    if (!this.#isSyncing) this.#work = this.#work.then(look, look);
    return this.#work;
  }

  async #look(): Promise<void> {
    const now = this.#options.clock.now();
    const before = this.#found;
    this.#found = new Map();
    // What is led elsewhere without any change of ours was translated by somebody else.
    const isNew = this.#isChanged;
    this.#isChanged = false;
    const cleaning = await this.#cleaner.clean(this.#nodePortAddresses, (flow) => {
      const since = before.get(flow.id) ?? (isNew ? now : undefined);
      if (!isTranslated(flow)) return 'ends';
      if (since === undefined) return 'stays';
      if (now - since >= WAIT_MS) return 'ends';
      this.#found.set(flow.id, since);
      return 'waits';
    });
    if (!cleaning) return;
    const hasFailed = cleaning.error !== undefined;
    const end = this.#options.clock.now();
    const rest = Math.min(LONG_REST_MS, Math.max(WAIT_MS, RESTS * cleaning.seconds * 1000));
    const [soon, later] = hasFailed ? [LONG_REST_MS, LONG_REST_MS] : [WAIT_MS, rest];
    this.#next = { urgent: end + soon, ordinary: end + later };
    this.#options.cleaned(cleaning);
    this.#isChanged ||= hasFailed;
    if (hasFailed || this.#found.size > 0) this.#lookInTime();
  }
}

function isTranslated({ original, reply }: Flow): boolean {
  return original.destinationPort !== reply.sourcePort || !ipEquals(original.destination, reply.source);
}
