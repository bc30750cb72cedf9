import { inBackground, type Timer } from '../../core/index.ts';
import type { Part, PartContext } from '../part.ts';

/** How soon it is seen that it was removed. */
const LOOK_MS = 10_000;

export interface LeftBehindOptions extends Pick<PartContext, 'clock' | 'logger'> {
  /** Whether this agent does that work itself: nothing is left behind then. */
  readonly isOurWork: boolean;
  /** What is there, in words; empty: nothing. */
  readonly look: () => Promise<string>;
  /** How to be rid of it. */
  readonly remedy: string;
  /** Lines of the log. */
  readonly words: { readonly lookFails: string; readonly found: string; readonly gone: string };
}

/**
 * What an agent that had more to do has left on this node, and nobody keeps right any more. It is told and not removed: packets
 * and pods depend on it, and whoever does that work from now on may not have begun yet.
 */
export class LeftBehind implements Part {
  readonly #options: LeftBehindOptions;
  #found = '';
  #timer: Timer | undefined;
  #isStopped = false;
  /** Whether the last look failed; it may have been while much changed. */
  #isFailing = false;

  constructor(options: LeftBehindOptions) {
    this.#options = options;
  }

  /** What is there, in words; empty: nothing. */
  found(): string {
    return this.#found;
  }

  start(): void {
    if (!this.#options.isOurWork) inBackground('work left behind', () => this.#look());
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    const { clock, logger, look, remedy, words } = this.#options;
    const before = this.#found;
    try {
      this.#found = await look();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) logger.warn({ err: error }, words.lookFails);
      this.#isFailing = true;
    }
    if (this.#isStopped) return;
    const present = this.#found;
    if (before === '' && present !== '') logger.warn({ present, remedy }, words.found);
    if (before !== '' && present === '') logger.info(words.gone);
    // Nobody makes more of it.
    if (present === '' && !this.#isFailing) return;
    this.#timer = clock.setTimer(() => this.#look(), LOOK_MS);
  }
}
