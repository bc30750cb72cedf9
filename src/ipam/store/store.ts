import { join } from 'node:path';
import { type IpAddress, type IpSpan, NodeplaneError } from '../../core/index.ts';
import { failpoint, withFileLock } from '../../sys/index.ts';
import { AddressSet } from '../ranges/allocator.ts';
import { type PlannedReservation, planReservations } from '../ranges/plan.ts';
import type { RangeSet } from '../ranges/range.ts';
import { type Boot, currentBoot } from './boot.ts';
import { type Files, ReservationDirectory } from './directory.ts';
import { type AttachmentNote, Journal, type JournalEntry } from './journal.ts';
import { DirectoryLookup } from './lookup.ts';
import { type Maker, thisMaker } from './maker.ts';
import { type OwnedFile, ownedFiles } from './owned-files.ts';
import { forgetEarlierBoots } from './reboot.ts';
import { formatRecord, type Owner, ownershipOf } from './record.ts';

/** Where the reservations of a network are kept. */
export interface StoreLocation {
  readonly dataDir: string;
  /** Must be a valid network name: it becomes a directory's name. */
  readonly network: string;
  /** For tests. @default node:fs */
  readonly files?: Files;
  /** For tests. @default the kernel's present run */
  readonly boot?: () => Boot;
}

/** What the journal has to say about an attachment. */
export interface AttachmentRecord {
  readonly owner: Owner;
  /** What the attachment's journal entry is called: a file name that follows from network and owner. */
  readonly name: string;
  /** Names of the features that will be set up. @default none */
  readonly features?: readonly string[];
}

/** An attachment whose link is there, with the addresses that its interface has. */
export interface StandingAttachment extends AttachmentRecord {
  readonly addresses: readonly IpAddress[];
}

/** What to reserve, and for whom. */
export interface ReservationRequest extends AttachmentRecord {
  readonly rangeSets: readonly RangeSet[];
  /** Addresses not to hand out although nobody reserved them, such as those of the bridge. */
  readonly excluded?: readonly IpAddress[];
  /** Parts of the ranges not to hand out. */
  readonly exclude?: readonly IpSpan[];
  /** Addresses the runtime asks for. */
  readonly requested?: readonly IpAddress[];
  /** Those of the network that stand, as the kernel has them. They count where nothing is noted of the network. @default none */
  readonly standing?: readonly StandingAttachment[];
  /** What to note for these reservations besides. */
  readonly note?: (reservations: readonly PlannedReservation[]) => AttachmentNote | undefined;
}

/**
 * Reserves one address per set, in files before it returns; all of them or none. The reference host-local may work on the
 * same directory at the same time: the lock and the files are its own. A killed process leaves files that are complete. The
 * disk is not waited for: a loss of power ends the pods too, and `forgetEarlierBoots` gives back whatever comes back of them.
 *
 * Where all that was noted of the network is gone, because somebody removed its directory under running pods, those that stand
 * are noted anew first: their addresses would be handed out once more.
 *
 * An owner that holds addresses by the journal, from an attempt that did not finish, gets those again. Addresses reserved
 * before the last boot are given back first. The cost does not grow with the number of addresses in use.
 *
 * @throws ERR_IPAM_EXHAUSTED and ERR_IPAM_REQUEST (nothing was written, not even the directory), ERR_IPAM_STORE,
 *   ERR_LOCK_TIMEOUT
 */
export function reserve(location: StoreLocation, request: ReservationRequest): PlannedReservation[] {
  const {
    owner,
    name,
    rangeSets,
    excluded = [],
    exclude = [],
    requested = [],
    features = [],
    standing = [],
    note,
  } = request;
  const directory = directoryAt(location);
  const journal = new Journal(directory.path);
  const plan = (held: readonly IpAddress[]) =>
    planReservations(rangeSets, {
      held,
      lastReserved: rangeSets.map((_, set) => directory.lastReserved(set)),
      taken: new DirectoryLookup(directory, journal, new AddressSet(excluded)),
      requested,
      exclude,
    });
  return guarded('reserve an address in', directory, () => {
    if (!directory.exists()) {
      plan([]);
      directory.create();
    }
    return withFileLock(directory.lockPath, () => {
      directory.sweep();
      const boot = (location.boot ?? currentBoot)();
      if (!journal.exists()) noteStanding(directory, journal, standing, thisMaker(boot));
      forgetEarlierBoots(directory, journal, boot);
      const noted = journal.read(name);
      const held = noted ? ownedFiles(directory, noted).map(({ address }) => address) : [];
      const reservations = plan(held);
      const fresh = reservations.filter((reservation) => reservation.fresh);
      const addresses = [...held, ...fresh.map(({ address }) => address)];
      journal.begin({ name, owner, addresses, features, note: note?.(reservations), maker: thisMaker(boot) });
      failpoint('journal');
      const record = formatRecord(owner);
      try {
        add(directory, fresh, record);
      } catch (error) {
        for (const { address } of fresh) {
          if (directory.content(address) === record) directory.remove(directory.fileName(address));
        }
        // With addresses held from before, the entry still says whose they are.
        if (held.length === 0) journal.remove(name);
        throw error;
      }
      return reservations;
    });
  });
}

/** Whether anything was ever noted of the attachments of a network, and is still there. Without the lock. */
export function isNoted(location: StoreLocation): boolean {
  return new Journal(directoryAt(location).path).exists();
}

/** Call it with the lock held. The notes come last: with the first of them the network is known. */
function noteStanding(
  directory: ReservationDirectory,
  journal: Journal,
  standing: readonly StandingAttachment[],
  maker: Maker,
): void {
  for (const { owner, addresses } of standing) {
    for (const address of addresses.filter((one) => !directory.has(one))) directory.add(address, formatRecord(owner));
  }
  for (const { name, owner, addresses, features = [] } of standing) {
    journal.begin({ name, owner, addresses, features, note: undefined, maker });
    journal.complete(name);
  }
}

/**
 * Notes an attachment that is about to be made without an address, or with addresses that another plugin manages. `release`
 * takes it back.
 *
 * @throws ERR_IPAM_STORE, ERR_LOCK_TIMEOUT
 */
export function noteAttachment(
  location: StoreLocation,
  { name, owner, features = [], note }: AttachmentRecord & { readonly note: AttachmentNote | undefined },
): void {
  const directory = directoryAt(location);
  guarded('note an attachment in', directory, () => {
    directory.create();
    withFileLock(directory.lockPath, () => {
      const maker = thisMaker((location.boot ?? currentBoot)());
      new Journal(directory.path).begin({ name, owner, addresses: [], features, note, maker });
    });
  });
}

/**
 * Notes that the attachment stands.
 *
 * @throws ERR_IPAM_STORE, also when its DEL came meanwhile
 */
export function completeAttachment(location: StoreLocation, name: string): void {
  const directory = directoryAt(location);
  guarded('note an attachment in', directory, () => {
    if (new Journal(directory.path).complete(name)) return;
    const message = `Cannot note attachment "${name}" in "${directory.path}": it was deleted while it was made`;
    throw new NodeplaneError('ERR_IPAM_STORE', message, { facts: { path: directory.path } });
  });
}

/**
 * What the journal says about an attachment that is about to be deleted; undefined when this plugin did not reserve for it.
 * Of an ADD that is under way the note is taken over: it then fails at its end and takes back what it makes from now on. An
 * ADD that ended before has made its link by now, for the DEL to find.
 *
 * @throws ERR_IPAM_STORE
 */
export function beginDeletion(location: StoreLocation, name: string): JournalEntry | undefined {
  const directory = directoryAt(location);
  return guarded('note a deletion in', directory, () => {
    const journal = new Journal(directory.path);
    const entry = journal.read(name);
    if (entry && !entry.complete) journal.complete(name);
    return entry;
  });
}

/** What the journal says about an attachment; undefined when this plugin did not reserve for it. */
export function journalEntry(location: StoreLocation, name: string): JournalEntry | undefined {
  return new Journal(directoryAt(location).path).read(name);
}

/**
 * Gives back every address of an owner; one that holds none is no error. With a journal entry the cost does not grow with
 * the number of addresses in use; without, all records are read, because another program may have made them. Records of
 * the format before host-local 0.8 name no interface; they count only if no record of the present format matches.
 *
 * @returns the addresses released
 * @throws ERR_IPAM_STORE, ERR_LOCK_TIMEOUT
 */
export function release(location: StoreLocation, owner: Owner, name: string): IpAddress[] {
  const directory = directoryAt(location);
  if (!directory.exists()) return [];
  return guarded('release addresses in', directory, () =>
    withFileLock(directory.lockPath, () => {
      directory.sweep();
      const journal = new Journal(directory.path);
      const entry = journal.read(name);
      const owned = entry ? ownedFiles(directory, entry) : addressesOf(directory, owner);
      for (const { fileName } of owned) directory.remove(fileName);
      failpoint('addresses-gone');
      // Also a note that cannot be read.
      journal.remove(name);
      return owned.map(({ address }) => address);
    }),
  );
}

/** The addresses an owner holds, by all records. Throws ERR_IPAM_STORE. */
export function addressesHeld(location: StoreLocation, owner: Owner, name: string): IpAddress[] {
  const directory = directoryAt(location);
  if (!directory.exists()) return [];
  return guarded('read', directory, () => {
    const entry = new Journal(directory.path).read(name);
    const owned = entry ? ownedFiles(directory, entry) : addressesOf(directory, owner);
    return owned.map(({ address }) => address);
  });
}

function addressesOf(directory: ReservationDirectory, owner: Owner): readonly OwnedFile[] {
  const stored = directory.list();
  const byInterface = stored.filter(({ content }) => ownershipOf(content, owner) === 'interface');
  if (byInterface.length > 0) return byInterface;
  return stored.filter(({ content }) => ownershipOf(content, owner) === 'container');
}

function add(directory: ReservationDirectory, fresh: readonly PlannedReservation[], record: string): void {
  for (const { address } of fresh) {
    directory.add(address, record);
    failpoint('address-file');
  }
  for (const { set, address } of fresh) directory.setLastReserved(set, address);
}

/** Where the reservations of a network are; nothing is looked at or made. */
export function directoryAt({ dataDir, network, files }: StoreLocation): ReservationDirectory {
  return new ReservationDirectory(join(dataDir, network), files);
}

/** Runs `fn` and turns what is no error of ours into one that names the directory. */
export function guarded<T>(what: string, directory: ReservationDirectory, fn: () => T): T {
  try {
    return fn();
  } catch (error) {
    if (error instanceof NodeplaneError && error.code !== 'ERR_SYSCALL') throw error;
    throw new NodeplaneError('ERR_IPAM_STORE', `Cannot ${what} "${directory.path}"`, {
      facts: { path: directory.path },
      cause: error,
    });
  }
}
