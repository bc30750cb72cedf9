import type { IpAddress } from '../../core/index.ts';
import type { ReservationDirectory } from './directory.ts';
import type { JournalEntry } from './journal.ts';
import { ownershipOf } from './record.ts';

/** An address and the file that reserves it. */
export interface OwnedFile {
  readonly address: IpAddress;
  readonly fileName: string;
}

/** The files of an entry's addresses, as far as they still name its owner. */
export function ownedFiles(directory: ReservationDirectory, { addresses, owner }: JournalEntry): OwnedFile[] {
  return addresses
    .filter((address) => ownershipOf(directory.content(address) ?? '', owner) === 'interface')
    .map((address) => ({ address, fileName: directory.fileName(address) }));
}
