import { loadLimits, type WantedAttachment, wantedBy } from '../../../cni/index.ts';
import { type ComparedPart, type Drift, inSlices } from '../../../core/index.ts';
import { journalEntries } from '../../../ipam/index.ts';
import { closing, Netlink } from '../../../netlink/index.ts';
import { NETLINK_ROUTE } from '../../../netlink/uapi/index.ts';

/**
 * What limits the traffic of pods (tc), by the notes that their ADDs left. Nobody hears of its changes without hearing of those of
 * every link, so it is looked at when somebody asks.
 */
export class TrafficLimits implements ComparedPart {
  readonly name = 'traffic limits of pods';
  readonly #dataDirs: readonly string[];

  /** @param dataDirs directories of reservations, with the notes about attachments */
  constructor(dataDirs: readonly string[]) {
    this.#dataDirs = dataDirs;
  }

  /** Rejects with errors of reading the kernel or the notes. */
  async compare(): Promise<readonly Drift[]> {
    const { limitDrift } = await loadLimits();
    return closing(Netlink.open(NETLINK_ROUTE), (host) => inSlices(limitDrift(host, this.#attachments())));
  }

  /** Rejects with errors of the kernel or the notes. */
  async repair(): Promise<void> {
    const { repairLimits } = await loadLimits();
    await closing(Netlink.open(NETLINK_ROUTE), (host) => inSlices(repairLimits(host, this.#attachments())));
  }

  /** Those that are made. */
  #attachments(): readonly WantedAttachment[] {
    const entries = this.#dataDirs.flatMap(journalEntries);
    return entries.flatMap((entry) => (entry.complete ? (wantedBy(entry.network, entry) ?? []) : []));
  }
}
