import { type Clock, type Drift, errorText, type Timer } from '../../../core/index.ts';
import type { NetworkEvent } from '../../../netlink/route/index.ts';
import type { Logger } from '../../logger.ts';
import type { LinkReport, LinkTask } from './look-at-links.ts';

export interface LinkWatchOptions {
  /** Directories of reservations, with the notes about attachments. */
  readonly dataDirs: readonly string[];
  /** Does it in a thread: a listing of links waits for the kernel's lock of all links. */
  readonly run: (task: LinkTask) => Promise<LinkReport>;
  /**
   * Tells when addresses of the node change, by whomever: not what pods change that come and go, of which there is much. Throws
   * ERR_NETLINK_SOCKET.
   */
  readonly watch: (listener: (event: NetworkEvent) => void) => { close(): void };
  readonly clock: Clock;
  readonly logger: Logger;
}

/** When nobody tells of a change. A look beside 60 pods takes 20 to 90 ms, the longer the less else goes on. */
const BETWEEN_LOOKS_MS = 60_000;
/** Whoever changes something seldom changes but one thing. */
const SETTLE_MS = 1000;
/** How long something has to differ: an ADD or DEL is done by then, and nobody is fought who changes something for a moment. */
const GRACE_MS = 10_000;
/** Links in one line of the log. */
const MOST_TOLD = 20;

/**
 * Mends what the pods of a node share (the bridge, its gateway addresses, routes and settings) when others change it,
 * as `ip address flush` does or a network manager that takes the bridge for its own: no pod of the node reaches
 * anything then, until the next ADD.
 *
 * What is done to the end of a single pod is told and left alone: it may be meant, and `nodeplane diff --repair` mends it.
 */
export class LinkWatch {
  readonly #options: LinkWatchOptions;
  #timer: { readonly timer: Timer; readonly due: number } | undefined;
  #watch: { close(): void } | undefined;
  /** Something has, since the last look began. */
  #hasChanged = false;
  /** By the clock. */
  #lastLook = Number.NEGATIVE_INFINITY;
  #stopped = false;
  /** What differed at the last look, in words, and since when, by the clock. */
  #since: ReadonlyMap<string, number> = new Map();
  /** What differs, is not mended, and was told. */
  #told: ReadonlySet<string> = new Set();
  /** Why it could not look, and could not mend, as told. */
  #failure = '';
  #mendFailure = '';

  constructor(options: LinkWatchOptions) {
    this.#options = options;
  }

  /** Looks soon, and from then on when addresses go, once in ten seconds at most, and once a minute. */
  start(): void {
    const { watch, clock, logger } = this.#options;
    try {
      this.#watch = watch((event) => {
        // A new one takes nothing away, and addresses that a router announces are told anew all the time.
        if (event.kind === 'address' && !event.deleted) return;
        this.#hasChanged = true;
        const due = Math.max(clock.now() + SETTLE_MS, this.#lastLook + GRACE_MS);
        if (this.#timer && due < this.#timer.due) this.#later(due - clock.now());
      });
    } catch (error) {
      logger.debug({ err: error }, 'Addresses cannot be watched: changes of the bridge are found within a minute');
    }
    this.#later(GRACE_MS);
  }

  /** Begins nothing any more. */
  stop(): void {
    this.#stopped = true;
    this.#watch?.close();
    this.#timer?.timer.cancel();
  }

  /** Why pods of this node may not be reached, where that is not mended: a sentence, or nothing. */
  differences(): readonly string[] {
    const [first] = this.#told;
    if (first === undefined) return [];
    const count = this.#told.size;
    const which = count === 1 ? first : `${count} of them, the first is ${first}`;
    return [`Interfaces of pods are not as their ADDs made them: ${which}`];
  }

  #later(ms: number): void {
    if (this.#stopped) return;
    const { clock } = this.#options;
    this.#timer?.timer.cancel();
    this.#timer = { timer: clock.setTimer(() => this.#look(), ms), due: clock.now() + ms };
  }

  async #look(): Promise<void> {
    const { logger, clock } = this.#options;
    this.#timer = undefined;
    this.#hasChanged = false;
    this.#lastLook = clock.now();
    let soon = false;
    try {
      soon = await this.#lookOnce();
      this.#failure = '';
    } catch (error) {
      const reason = errorText(error);
      if (!this.#stopped && reason !== this.#failure) {
        logger.error({ err: error }, 'The bridge and interfaces of pods cannot be looked after');
      }
      this.#failure = reason;
    }
    this.#later(soon || this.#hasChanged ? GRACE_MS : BETWEEN_LOOKS_MS);
  }

  /** @returns whether there is something that may be of a moment */
  async #lookOnce(): Promise<boolean> {
    const { clock } = this.#options;
    const { drifts, shared = [] } = await this.#ask(false);
    const now = clock.now();
    this.#since = new Map(drifts.map(textOf).map((text) => [text, this.#since.get(text) ?? now]));
    const lasting = [...this.#since].flatMap(([text, since]) => (now - since >= GRACE_MS ? [text] : []));
    const isShared = new Set(shared.map(textOf));
    const toMend = lasting.filter((text) => isShared.has(text));
    const mended = toMend.length > 0 ? await this.#mend(toMend) : new Set();
    const left = lasting.filter((text) => !mended.has(text));
    this.#tell(left);
    return mended.size > 0 || this.#since.size > left.length;
  }

  /** @returns what is mended of it */
  async #mend(differences: readonly string[]): Promise<ReadonlySet<string>> {
    const { logger } = this.#options;
    let failure: unknown;
    try {
      await this.#ask(true);
    } catch (error) {
      failure = error;
    }
    const still = new Set((await this.#ask(false)).drifts.map(textOf));
    const mended = differences.filter((text) => !still.has(text));
    if (mended.length > 0) {
      logger.warn({ differences: mended }, 'What pods share on this node was not as they need it; it is mended');
    }
    const reason = failure === undefined ? '' : errorText(failure);
    if (reason !== '' && reason !== this.#mendFailure)
      logger.error({ err: failure }, 'What pods share cannot be mended');
    this.#mendFailure = reason;
    return new Set(mended);
  }

  #tell(left: readonly string[]): void {
    const { logger } = this.#options;
    const news = left.filter((text) => !this.#told.has(text));
    if (news.length > 0) {
      logger.warn(
        { differences: news.slice(0, MOST_TOLD), count: news.length },
        'Interfaces of pods on this node were changed, and are left so: see `nodeplane diff`',
      );
    } else if (left.length === 0 && this.#told.size > 0) {
      logger.info('The interfaces of pods on this node are in order again');
    }
    this.#told = new Set(left);
  }

  async #ask(repair: boolean): Promise<Exclude<LinkReport, { readonly failure: string }>> {
    const report = await this.#options.run({ links: this.#options.dataDirs, repair, onNode: true });
    if ('failure' in report) throw new Error(report.failure);
    return report;
  }
}

function textOf({ object, difference, ours = [], theirs = [] }: Drift): string {
  const lines = [...theirs.map((line) => `- ${line}`), ...ours.map((line) => `+ ${line}`)];
  return `${object} (${lines.length > 0 ? lines.join(', ') : difference})`;
}
