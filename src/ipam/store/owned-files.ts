import type { IpAddress } from '../../core/index.ts';
import type { ReservationDirectory } from './directory.ts';
import type { JournalEntry } from './journal.ts';
import { isOwnOrDamaged } from './record.ts';

/** An address and the file that reserves it. */
export interface OwnedFile {
  readonly address: IpAddress;
  readonly fileName: string;
}

/** The files of an entry's addresses, but those that name somebody else by now. */
export function ownedFiles(directory: ReservationDirectory, { addresses, owner }: JournalEntry): OwnedFile[] {
  return addresses.flatMap((address) => {
    const content = directory.content(address);
    const isOwned = content !== undefined && isOwnOrDamaged(content, owner);
    return isOwned ? [{ address, fileName: directory.fileName(address) }] : [];
  });
}
