import { formatIp, type IpAddress, NodeplaneError } from '../core/index.ts';
import { withFileLock } from '../sys/index.ts';
import { AddressSet } from './allocator.ts';
import { currentBoot } from './boot.ts';
import { isRunning, Journal, type JournalEntry } from './journal.ts';
import { DirectoryLookup } from './lookup.ts';
import { notedAddresses } from './noted.ts';
import { planReservations } from './plan.ts';
import { forgetEarlierBoots } from './reboot.ts';
import { directoryAt, guarded, type ReservationRequest, type StoreLocation } from './store.ts';

/** What was given back, in words: `10.244.1.5 of pod-a eth0`. */
export type Collected = string;

/** Whether an attachment is being made at this moment, by a process that still runs. */
export function isUnderWay({ complete, maker }: JournalEntry): boolean {
  return !complete && isRunning(maker);
}

/**
 * Gives back the addresses of attachments that this plugin made and that are no more: those made before the last boot,
 * those whose ADD was killed, and those of which `isGone` says so (their link vanished with the pod's namespace).
 *
 * @throws ERR_IPAM_STORE, ERR_LOCK_TIMEOUT
 */
export function collectGone(location: StoreLocation, isGone: (entry: JournalEntry) => boolean): Collected[] {
  return locked(location, (directory, journal) => {
    const gone = journal.list().filter((entry) => !isUnderWay(entry) && isGone(entry));
    return gone.flatMap((entry) => {
      const owned = notedAddresses(directory, entry);
      for (const { fileName } of owned) directory.remove(fileName);
      journal.remove(entry.name);
      return owned.map(({ address }) => describe(address, `${entry.owner.containerId} ${entry.owner.ifname}`));
    });
  });
}

/**
 * Gives back all addresses of the network but those of valid owners and of attachments under way. Files that name nobody
 * were left by a full disk or a crash, and go too; files with a content of another kind stay.
 *
 * @param isValid undefined `ifname` stands for a record of the format before host-local 0.8, which names none
 * @throws ERR_IPAM_STORE, ERR_LOCK_TIMEOUT
 */
export function collectInvalid(
  location: StoreLocation,
  isValid: (containerId: string, ifname: string | undefined) => boolean,
): Collected[] {
  return locked(location, (directory, journal) => {
    const underWay = new Set<string>();
    for (const entry of journal.list()) {
      const { containerId, ifname } = entry.owner;
      if (isUnderWay(entry)) for (const address of entry.addresses) underWay.add(formatIp(address));
      else if (!isValid(containerId, ifname)) journal.remove(entry.name);
    }
    return directory.list().flatMap(({ address, fileName, content }) => {
      const [containerId = '', ifname, ...rest] = content.trim().split('\r\n');
      const isRecord = rest.length === 0 && /^\S*$/.test(containerId);
      if (!isRecord || underWay.has(fileName) || (containerId && isValid(containerId, ifname))) return [];
      if (!tryRemove(() => directory.remove(fileName))) return [];
      return [describe(address, containerId ? `${containerId} ${ifname ?? ''}`.trim() : 'nobody')];
    });
  });
}

/**
 * Checks, without changing anything, whether an ADD could reserve: the directory can be written, and each range set has a
 * free address, or one that can be given back because `isGone` says so.
 *
 * @throws ERR_IPAM_STORE, ERR_IPAM_EXHAUSTED
 */
export function checkAvailable(
  location: StoreLocation,
  { rangeSets, exclude, excluded = [] }: Pick<ReservationRequest, 'rangeSets' | 'exclude' | 'excluded'>,
  isGone: (entry: JournalEntry) => boolean,
): void {
  const directory = directoryAt(location);
  if (!directory.isWritable()) {
    throw new NodeplaneError('ERR_IPAM_STORE', `Cannot reserve an address in "${directory.path}": it is not writable`, {
      facts: { path: directory.path },
    });
  }
  const journal = new Journal(directory.path);
  const taken = new DirectoryLookup(directory, journal, new AddressSet(excluded));
  const lastReserved = rangeSets.map((_, set) => directory.lastReserved(set));
  guarded('read', directory, () => {
    try {
      planReservations(rangeSets, { held: [], lastReserved, taken, ...(exclude && { exclude }) });
    } catch (error) {
      const last = journal.lastBootId();
      const afterReboot = last !== undefined && last !== (location.boot ?? currentBoot)().id;
      if (!afterReboot && !journal.list().some((entry) => !isUnderWay(entry) && isGone(entry))) throw error;
    }
  });
}

function locked(
  location: StoreLocation,
  fn: (directory: ReturnType<typeof directoryAt>, journal: Journal) => Collected[],
): Collected[] {
  const directory = directoryAt(location);
  if (!directory.exists()) return [];
  return guarded('collect reservations in', directory, () =>
    withFileLock(directory.lockPath, () => {
      const journal = new Journal(directory.path);
      forgetEarlierBoots(directory, journal, (location.boot ?? currentBoot)());
      const collected = fn(directory, journal);
      if (collected.length > 0) directory.sync();
      return collected;
    }),
  );
}

function describe(address: IpAddress, owner: string): Collected {
  return `${formatIp(address)} of ${owner}`;
}

/** What cannot be read as a file, a directory for example, cannot be removed as one. */
function tryRemove(remove: () => void): boolean {
  try {
    remove();
    return true;
  } catch {
    return false;
  }
}
