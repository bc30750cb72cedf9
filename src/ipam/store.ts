import { join } from 'node:path';
import { type IpAddress, NodeplaneError } from '../core/index.ts';
import { withFileLock } from '../sys/index.ts';
import { type Files, ReservationDirectory, type StoredReservation } from './directory.ts';
import { type PlannedReservation, planReservations } from './plan.ts';
import type { RangeSet } from './range.ts';
import { formatRecord, type Owner, ownershipOf } from './record.ts';

/** Where the reservations of a network are kept. */
export interface StoreLocation {
  readonly dataDir: string;
  /** Must be a valid network name: it becomes a directory's name. */
  readonly network: string;
  /** For tests. @default node:fs */
  readonly files?: Files;
}

/** What to reserve, and for whom. */
export interface ReservationRequest {
  readonly owner: Owner;
  readonly rangeSets: readonly RangeSet[];
  /** Addresses not to hand out although nobody reserved them, such as those of the bridge. */
  readonly excluded?: readonly IpAddress[];
}

/**
 * Reserves one address per set, on disk and durably before it returns; all of them or none. The reference host-local may
 * work on the same directory at the same time: the lock and the files are its own.
 *
 * An owner that already holds an address of a set gets that one again.
 *
 * @throws ERR_IPAM_EXHAUSTED (nothing was written, not even the directory), ERR_IPAM_STORE, ERR_LOCK_TIMEOUT
 */
export function reserve(location: StoreLocation, request: ReservationRequest): PlannedReservation[] {
  const { owner, rangeSets, excluded = [] } = request;
  const directory = directoryAt(location);
  return guarded('reserve an address in', directory, () => {
    if (!directory.exists()) {
      planReservations(rangeSets, { stored: [], lastReserved: [], excluded }, owner);
      directory.create();
    }
    return withFileLock(directory.lockPath, () => {
      directory.sweep();
      const lastReserved = rangeSets.map((_, set) => directory.lastReserved(set));
      const plan = planReservations(rangeSets, { stored: directory.list(), lastReserved, excluded }, owner);
      commit(
        directory,
        plan.filter(({ fresh }) => fresh),
        owner,
      );
      return plan;
    });
  });
}

/**
 * Gives back every address of an owner; one that holds none is no error. Records of the format before host-local 0.8 name
 * no interface; they count only if no record of the present format matches.
 *
 * @returns the addresses released
 * @throws ERR_IPAM_STORE, ERR_LOCK_TIMEOUT
 */
export function release(location: StoreLocation, owner: Owner): IpAddress[] {
  const directory = directoryAt(location);
  if (!directory.exists()) return [];
  return guarded('release addresses in', directory, () =>
    withFileLock(directory.lockPath, () => {
      directory.sweep();
      const owned = ownedBy(directory.list(), owner);
      for (const { fileName } of owned) directory.remove(fileName);
      if (owned.length > 0) directory.sync();
      return owned.map(({ address }) => address);
    }),
  );
}

function ownedBy(stored: readonly StoredReservation[], owner: Owner): readonly StoredReservation[] {
  const byInterface = stored.filter(({ content }) => ownershipOf(content, owner) === 'interface');
  if (byInterface.length > 0) return byInterface;
  return stored.filter(({ content }) => ownershipOf(content, owner) === 'container');
}

function commit(directory: ReservationDirectory, fresh: readonly PlannedReservation[], owner: Owner): void {
  if (fresh.length === 0) return;
  const added: string[] = [];
  try {
    for (const { address } of fresh) added.push(directory.add(address, formatRecord(owner)));
    for (const { set, address } of fresh) directory.setLastReserved(set, address);
    directory.sync();
  } catch (error) {
    for (const fileName of added) directory.remove(fileName);
    throw error;
  }
}

function directoryAt({ dataDir, network, files }: StoreLocation): ReservationDirectory {
  return new ReservationDirectory(join(dataDir, network), files);
}

function guarded<T>(what: string, directory: ReservationDirectory, fn: () => T): T {
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
