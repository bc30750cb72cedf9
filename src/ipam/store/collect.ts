import { formatIp, NodeplaneError } from '../../core/index.ts';
import { withFileLock } from '../../sys/index.ts';
import { AddressSet } from '../ranges/allocator.ts';
import { planReservations } from '../ranges/plan.ts';
import { currentBoot } from './boot.ts';
import { type Collected, forgetEntry, forgetFile } from './collected.ts';
import { Journal, type JournalEntry } from './journal.ts';
import { DirectoryLookup } from './lookup.ts';
import { isAtWork, type Maker, thisMaker } from './maker.ts';
import { ownedFiles } from './owned-files.ts';
import { forgetEarlierBoots } from './reboot.ts';
import { formatRecord } from './record.ts';
import { directoryAt, guarded, type ReservationRequest, type StoreLocation } from './store.ts';

/** The kernel's state of attachments: whether they are there still, and how to remove what they left. */
export interface KernelState {
  /** Whether there is a link of this name in the thread's network namespace. */
  readonly hasLink: (name: string) => boolean;
  /** Removes what an attachment left in the kernel. False when that failed: then its records stay for another try. */
  readonly remove: (entry: JournalEntry) => boolean;
}

/**
 * Whether an attachment is being made at this moment, by a process that still runs.
 *
 * @param here this process now
 */
export function isUnderWay({ complete, maker }: JournalEntry, here?: Maker): boolean {
  return !complete && isAtWork(maker, here ?? thisMaker(currentBoot()));
}

/** Whether an attachment was made, in this network namespace and since the last boot: its link can be looked for here. */
export function isMadeHere({ complete, maker }: JournalEntry): boolean {
  const here = thisMaker(currentBoot());
  return complete && maker.bootId === here.bootId && (maker.netns === undefined || maker.netns === here.netns);
}

/** The attachments of a network that are being made at this moment. Nobody is waited for. */
export function entriesUnderWay(location: StoreLocation): JournalEntry[] {
  const here = makerHere(location);
  return new Journal(directoryAt(location).path).list().filter((entry) => isUnderWay(entry, here));
}

/**
 * Whether an attachment is certainly no more: made before the last boot, left half-made by a killed ADD, or without its
 * link, which vanished with the pod's namespace. Of one in another network namespace the link cannot be seen.
 *
 * @param here this process now
 */
export function isGone(entry: JournalEntry, here: Maker, hasLink: KernelState['hasLink']): boolean {
  const { name, complete, maker } = entry;
  if (maker.bootId !== here.bootId) return true;
  if (maker.netns !== undefined && maker.netns !== here.netns) return false;
  return complete ? !hasLink(name) : !isUnderWay(entry, here);
}

/** The attachments that `collectGone` would collect. Changes nothing and waits for nobody. */
export function entriesGone(location: StoreLocation, hasLink: KernelState['hasLink']): JournalEntry[] {
  return goneIn(location, new Journal(directoryAt(location).path), hasLink);
}

/** Whether `collectGone` would find something, without waiting for anybody. */
export function hasGone(location: StoreLocation, hasLink: KernelState['hasLink']): boolean {
  const boot = (location.boot ?? currentBoot)();
  const journal = new Journal(directoryAt(location).path);
  return wasBootedSince(journal, boot.id) || goneIn(location, journal, hasLink).length > 0;
}

/**
 * Gives back the addresses of attachments that this plugin made and that are gone, after what they left in the kernel was
 * removed. The lock is held for one at a time: no ADD of the same attachment comes in between, and others wait for little.
 * What was reserved before the last boot goes too, whoever reserved it.
 *
 * @throws ERR_IPAM_STORE, ERR_LOCK_TIMEOUT
 */
export function collectGone(location: StoreLocation, { hasLink, remove }: KernelState): Collected[] {
  // Listed before links are looked for: an attachment that was complete had its link by then.
  const gone = goneIn(location, new Journal(directoryAt(location).path), hasLink);
  const collected = gone.flatMap(({ name }) =>
    locked(location, (directory, journal) => {
      const entry = journal.read(name);
      const stays = !entry || !isGone(entry, makerHere(location), hasLink) || !remove(entry);
      return stays ? [] : [forgetEntry(directory, journal, entry)];
    }),
  );
  const ofEarlierBoots = locked(location, (directory, journal) =>
    forgetEarlierBoots(directory, journal, (location.boot ?? currentBoot)()),
  );
  return [...collected, ...ofEarlierBoots];
}

/**
 * Gives back all addresses of the network but those of valid owners and of attachments under way. Whose a damaged file is
 * says the journal. Of those it does not know, files that name nobody were left by a full disk or a crash, and go too; files
 * with a content of another kind stay. Of attachments that are not valid the notes that cannot be read go as well.
 *
 * @param isValid undefined `ifname` stands for a record of the format before host-local 0.8, which names none
 * @param isValidName whether the journal's entry of this name may be a valid attachment's
 * @throws ERR_IPAM_STORE, ERR_LOCK_TIMEOUT
 */
export function collectInvalid(
  location: StoreLocation,
  isValid: (containerId: string, ifname: string | undefined) => boolean,
  isValidName: (name: string) => boolean,
): Collected[] {
  return locked(location, (directory, journal) => {
    forgetEarlierBoots(directory, journal, (location.boot ?? currentBoot)());
    for (const name of journal.damaged()) if (!isValidName(name)) journal.remove(name);
    const underWay = new Set<string>();
    const noted = new Map<string, string>();
    const here = makerHere(location);
    for (const entry of journal.list()) {
      const { containerId, ifname } = entry.owner;
      if (isUnderWay(entry, here)) {
        for (const address of entry.addresses) underWay.add(formatIp(address));
        continue;
      }
      for (const { fileName } of ownedFiles(directory, entry)) noted.set(fileName, formatRecord(entry.owner));
      if (!isValid(containerId, ifname)) journal.remove(entry.name);
    }
    return directory.list().flatMap((stored) => {
      const file = { ...stored, content: noted.get(stored.fileName) ?? stored.content };
      const [containerId = '', ifname, ...rest] = file.content.trim().split('\r\n');
      const isRecord = rest.length === 0 && /^\S*$/.test(containerId);
      if (!isRecord || underWay.has(file.fileName) || (containerId && isValid(containerId, ifname))) return [];
      return forgetFile(directory, file) ?? [];
    });
  });
}

/**
 * Checks, without changing anything, whether an ADD could reserve: the directory can be written, its disk is not full, and each range
 * set has a free address, or one that can be given back.
 *
 * @throws ERR_IPAM_STORE, ERR_IPAM_EXHAUSTED
 */
export function checkAvailable(
  location: StoreLocation,
  { rangeSets, exclude, excluded = [] }: Pick<ReservationRequest, 'rangeSets' | 'exclude' | 'excluded'>,
  hasLink: KernelState['hasLink'],
): void {
  const directory = directoryAt(location);
  const obstacle = directory.obstacle();
  if (obstacle !== undefined) {
    throw new NodeplaneError('ERR_IPAM_STORE', `Cannot reserve an address in "${directory.path}": ${obstacle}`, {
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
      if (!hasGone(location, hasLink)) throw error;
    }
  });
}

function makerHere({ boot = currentBoot }: StoreLocation): Maker {
  return thisMaker(boot());
}

function goneIn(location: StoreLocation, journal: Journal, hasLink: KernelState['hasLink']): JournalEntry[] {
  const entries = journal.list();
  const here = makerHere(location);
  return entries.filter((entry) => isGone(entry, here, hasLink));
}

function wasBootedSince(journal: Journal, bootId: string): boolean {
  const last = journal.lastBootId();
  return last !== undefined && last !== bootId;
}

function locked<T>(
  location: StoreLocation,
  fn: (directory: ReturnType<typeof directoryAt>, journal: Journal) => T[],
): T[] {
  const directory = directoryAt(location);
  if (!directory.exists()) return [];
  return guarded('collect reservations in', directory, () =>
    withFileLock(directory.lockPath, () => fn(directory, new Journal(directory.path))),
  );
}
