import type { IpAddress } from '../../core/index.ts';
import type { ReservationDirectory } from './directory.ts';
import type { JournalEntry } from './journal.ts';
import { ownershipOf } from './record.ts';

/** An address and the file that reserves it. */
export interface OwnedFile {
  readonly address: IpAddress;
  readonly fileName: string;
}

/** Those of an entry's addresses that are still its owner's. */
export function notedAddresses(directory: ReservationDirectory, { addresses, owner }: JournalEntry): OwnedFile[] {
  return addresses
    .filter((address) => ownershipOf(directory.content(address) ?? '', owner) === 'interface')
    .map((address) => ({ address, fileName: directory.fileName(address) }));
}
