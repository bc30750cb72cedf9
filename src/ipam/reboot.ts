import type { Boot } from './boot.ts';
import type { ReservationDirectory } from './directory.ts';
import type { Journal } from './journal.ts';
import { notedAddresses } from './noted.ts';

/**
 * Gives back what was reserved before the kernel was started: no pod survives that. Call it with the lock held.
 *
 * The journal knows the run of each of its reservations. Those of other programs are judged by the time of their file, and
 * only if the journal says that the network was last used in an earlier run: on a node that comes from another plugin
 * nothing is known, and all stay.
 */
export function forgetEarlierBoots(directory: ReservationDirectory, journal: Journal, boot: Boot): void {
  const last = journal.lastBootId();
  if (last === boot.id) return;
  if (last !== undefined) {
    const removed = [...forgetNoted(directory, journal, boot), ...forgetOlder(directory, journal, boot)];
    if (removed.length > 0) directory.sync();
  }
  journal.noteBootId(boot.id);
}

/** Reservations that the journal says are of earlier runs. Returns the files removed. */
function forgetNoted(directory: ReservationDirectory, journal: Journal, boot: Boot): string[] {
  const earlier = journal.list().filter(({ bootId }) => bootId !== boot.id);
  return earlier.flatMap((entry) => {
    const files = notedAddresses(directory, entry).map(({ fileName }) => fileName);
    for (const file of files) directory.remove(file);
    journal.remove(entry.name);
    return files;
  });
}

/** Reservations of others, made before this run began. Returns the files removed. */
function forgetOlder(directory: ReservationDirectory, journal: Journal, boot: Boot): string[] {
  const noted = new Set(journal.list().flatMap(({ addresses }) => addresses.map((ip) => directory.fileName(ip))));
  const files = directory.addresses().map((address) => directory.fileName(address));
  const older = files.filter((file) => !noted.has(file) && directory.changedMs(file) < boot.startedMs);
  for (const file of older) directory.remove(file);
  return older;
}
