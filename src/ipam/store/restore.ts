import type { IpAddress } from '../../core/index.ts';
import { withFileLock } from '../../sys/index.ts';
import { isMadeHere, type KernelState } from './collect.ts';
import type { ReservationDirectory } from './directory.ts';
import { Journal } from './journal.ts';
import { formatRecord, isOwnOrDamaged, type Owner } from './record.ts';
import { directoryAt, guarded, type StoreLocation } from './store.ts';

/** An address whose reservation was written again. */
export interface Restored {
  readonly owner: Owner;
  readonly address: IpAddress;
}

/** Whether `restoreReservations` would find something, without waiting for anybody. */
export function hasLost(location: StoreLocation, hasLink: KernelState['hasLink']): boolean {
  const directory = directoryAt(location);
  return guarded('read', directory, () => lostIn(directory, hasLink).length > 0);
}

/**
 * Writes the reservations of attachments that stand again where their files were removed or damaged: their addresses would
 * be handed out once more. An address that somebody else has reserved by now stays his.
 *
 * @throws ERR_IPAM_STORE, ERR_LOCK_TIMEOUT
 */
export function restoreReservations(location: StoreLocation, hasLink: KernelState['hasLink']): Restored[] {
  const directory = directoryAt(location);
  if (!directory.exists()) return [];
  return guarded('reserve an address in', directory, () =>
    // An ADD or a DEL writes or removes an entry and its files while it holds the lock.
    withFileLock(directory.lockPath, () => {
      directory.sweep();
      return lostIn(directory, hasLink).map(({ owner, address }) => {
        if (directory.has(address)) directory.remove(directory.fileName(address));
        directory.add(address, formatRecord(owner));
        return { owner, address };
      });
    }),
  );
}

function lostIn(directory: ReservationDirectory, hasLink: KernelState['hasLink']): Restored[] {
  return new Journal(directory.path).list().flatMap((entry) => {
    const { name, owner, addresses } = entry;
    const lost = addresses.filter((address) => {
      const content = directory.content(address) ?? '';
      return content.trim() !== formatRecord(owner) && isOwnOrDamaged(content, owner);
    });
    // The kernel is asked about those alone that have lost something: nearly always none.
    const isStanding = lost.length > 0 && isMadeHere(entry) && hasLink(name);
    return isStanding ? lost.map((address) => ({ owner, address })) : [];
  });
}
