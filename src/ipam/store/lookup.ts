import { type IpAddress, type IpFamily, ipFromValue, ipValue } from '../../core/index.ts';
import { AddressSet, type TakenAddresses, type Usage } from '../ranges/allocator.ts';
import type { ReservationDirectory } from './directory.ts';
import type { Journal } from './journal.ts';

/** Looking for one file costs a few microseconds, listing 65,000 about thirty milliseconds. */
const MOST_PROBES = 512;
/** Each holder's file is read for the sentence about who holds what. */
const MOST_HOLDERS = 4096;

/**
 * Which addresses are taken, asked of the directory one by one: an ADD looks at few of them, however many there are. Who
 * asks for more gets the directory listed once. Good while the lock is held.
 */
export class DirectoryLookup implements TakenAddresses {
  readonly #directory: ReservationDirectory;
  readonly #journal: Journal;
  /** Taken although no file says so. */
  readonly #others: AddressSet;
  #probes = 0;
  #listed: AddressSet | undefined;

  constructor(directory: ReservationDirectory, journal: Journal, others: AddressSet) {
    this.#directory = directory;
    this.#journal = journal;
    this.#others = others;
  }

  hasValue(family: IpFamily, value: bigint): boolean {
    if (this.#others.hasValue(family, value)) return true;
    if (!this.#listed && ++this.#probes > MOST_PROBES) this.#listed = new AddressSet(this.#addresses());
    return this.#listed?.hasValue(family, value) ?? this.#directory.has(ipFromValue(family, value));
  }

  usage(family: IpFamily, predicate: (value: bigint) => boolean): Usage {
    const others = this.#others.usage(family, predicate).inUse;
    const taken = this.#addresses().filter(
      (ip) => ip.family === family && predicate(ipValue(ip)) && !this.#others.hasValue(family, ipValue(ip)),
    );
    const inUse = taken.length + others;
    if (inUse === 0 || taken.length > MOST_HOLDERS) return { inUse, by: '' };
    const ours = new AddressSet(this.#journal.list().flatMap(({ addresses }) => addresses));
    let [attachments, unreadable] = [0, 0];
    for (const ip of taken) {
      if (ours.has(ip)) attachments++;
      else if (this.#directory.content(ip)?.trim() === '') unreadable++;
    }
    const parts = [
      [attachments, 'by pods of this plugin'],
      [taken.length - attachments - unreadable, 'by reservations of other programs'],
      [unreadable, 'by files that name nobody'],
      [others, 'by the node itself'],
    ] as const;
    return {
      inUse,
      by: parts.flatMap(([count, whom]) => (count > 0 ? [`${count} ${whom}`] : [])).join(', '),
    };
  }

  /** None before the first reservation, which makes the directory. */
  #addresses(): IpAddress[] {
    return this.#directory.exists() ? this.#directory.addresses() : [];
  }
}
