import type { Boot } from './boot.ts';
import { type Collected, forgetEntry, forgetFile } from './collected.ts';
import type { ReservationDirectory } from './directory.ts';
import type { Journal } from './journal.ts';

/**
 * Gives back what was reserved before the kernel was started: no pod survives that. Call it with the lock held. Files of
 * reservations are never synced, so after a loss of power some are missing, and some are there and empty.
 *
 * The journal knows the run of each of its reservations. Those of other programs are judged by the time of their file, and
 * only if the journal says that the network was last used in an earlier run: on a node that comes from another plugin
 * nothing is known, and all stay.
 */
export function forgetEarlierBoots(directory: ReservationDirectory, journal: Journal, boot: Boot): Collected[] {
  const last = journal.lastBootId();
  if (last === boot.id) return [];
  const removed =
    last === undefined ? [] : [...forgetNoted(directory, journal, boot), ...forgetOlder(directory, journal, boot)];
  journal.sweep();
  journal.noteBootId(boot.id);
  return removed;
}

/** Reservations that the journal says are of earlier runs. */
function forgetNoted(directory: ReservationDirectory, journal: Journal, boot: Boot): Collected[] {
  const earlier = journal.list().filter(({ maker }) => maker.bootId !== boot.id);
  return earlier.map((entry) => forgetEntry(directory, journal, entry));
}

/** Reservations that no entry tells of, made before this run began. An empty one is of no run: whoever writes one holds the lock. */
function forgetOlder(directory: ReservationDirectory, journal: Journal, boot: Boot): Collected[] {
  const noted = new Set(journal.list().flatMap(({ addresses }) => addresses.map((ip) => directory.fileName(ip))));
  const others = directory.list().filter(({ fileName }) => !noted.has(fileName));
  return others
    .filter(({ fileName, content }) => content === '' || directory.changedMs(fileName) < boot.startedMs)
    .flatMap((file) => forgetFile(directory, file) ?? []);
}
