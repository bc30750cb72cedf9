import { type ComparedPart, type Drift, NodeplaneError } from '../../../core/index.ts';
import type { LinkReport, LinkTask } from './look-at-links.ts';

/**
 * The interfaces of pods and what they are connected to, by the notes that their ADDs left. Nobody listens to the kernel for them, because
 * every pod that comes or goes changes them: they are looked at when somebody asks, and those of the node now and then (LinkWatch).
 */
export class PodLinks implements ComparedPart {
  readonly name = 'interfaces of pods';
  readonly #dataDirs: readonly string[];
  readonly #run: (task: LinkTask) => Promise<LinkReport>;

  /**
   * @param dataDirs directories of reservations, with the notes about attachments
   * @param run does it in a thread: a listing of links waits for the kernel's lock of all links
   */
  constructor(dataDirs: readonly string[], run: (task: LinkTask) => Promise<LinkReport>) {
    this.#dataDirs = dataDirs;
    this.#run = run;
  }

  /** Rejects with ERR_DIFF, or why there is no thread for it. */
  compare(): Promise<readonly Drift[]> {
    return this.#ask(false);
  }

  /** As `compare`. What cannot be mended is no error. */
  async repair(): Promise<void> {
    await this.#ask(true);
  }

  async #ask(repair: boolean): Promise<readonly Drift[]> {
    const report = await this.#run({ links: this.#dataDirs, repair });
    if ('failure' in report) throw new NodeplaneError('ERR_DIFF', report.failure);
    return report.drifts;
  }
}
