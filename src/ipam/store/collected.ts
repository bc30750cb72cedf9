import { formatIp, type IpAddress } from '../../core/index.ts';
import type { ReservationDirectory, StoredReservation } from './directory.ts';
import type { Journal, JournalEntry } from './journal.ts';
import { ownedFiles } from './owned-files.ts';

/** What was given back of one attachment, or of one file that names it. */
export interface Collected {
  /** '' when a file names nobody. */
  readonly containerId: string;
  /** Undefined when a file names none: the format before host-local 0.8, or nobody. */
  readonly ifname: string | undefined;
  /** Empty for an attachment that never had any, or whose addresses another plugin manages. */
  readonly addresses: readonly IpAddress[];
}

/** In words: `10.244.1.5 of pod-a eth0`. */
export function formatCollected({ containerId, ifname, addresses }: Collected): string {
  const owner = containerId === '' ? 'nobody' : [containerId, ifname ?? ''].join(' ').trim();
  return `${addresses.map(formatIp).join(' and ') || 'what was left'} of ${owner}`;
}

/** Removes an attachment's reservations and its entry, in this order. */
export function forgetEntry(directory: ReservationDirectory, journal: Journal, entry: JournalEntry): Collected {
  const owned = ownedFiles(directory, entry);
  for (const { fileName } of owned) directory.remove(fileName);
  journal.remove(entry.name);
  return { ...entry.owner, addresses: owned.map(({ address }) => address) };
}

/** Removes one reservation. Undefined for what cannot be removed as a file, a directory for example: it stays. */
export function forgetFile(
  directory: ReservationDirectory,
  { address, fileName, content }: StoredReservation,
): Collected | undefined {
  try {
    directory.remove(fileName);
  } catch {
    return undefined;
  }
  const [containerId = '', ifname] = content.trim().split('\r\n');
  return { containerId, ifname, addresses: [address] };
}
