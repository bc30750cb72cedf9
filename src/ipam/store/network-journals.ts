import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isNotFound, NodeplaneError } from '../../core/index.ts';
import { Journal, type JournalEntry } from './journal.ts';

/**
 * The networks whose attachments this plugin noted in a directory of reservations; none when there is no such directory.
 *
 * @throws ERR_IPAM_STORE
 */
export function journaledNetworks(dataDir: string): string[] {
  try {
    return readdirSync(dataDir).filter((name) => existsSync(new Journal(join(dataDir, name)).path));
  } catch (error) {
    if (isNotFound(error)) return [];
    throw new NodeplaneError('ERR_IPAM_STORE', `Cannot read "${dataDir}"`, { facts: { path: dataDir }, cause: error });
  }
}

/**
 * All that is noted about attachments in a directory of reservations. Nobody is waited for: what is being changed is seen
 * as it was before or after.
 *
 * @throws ERR_IPAM_STORE
 */
export function journalEntries(dataDir: string): (JournalEntry & { readonly network: string })[] {
  return journaledNetworks(dataDir).flatMap((network) =>
    new Journal(join(dataDir, network)).list().map((entry) => ({ ...entry, network })),
  );
}

/**
 * The notes about attachments that are there and cannot be read, in a directory of reservations: by the link's name, and their
 * files.
 *
 * @throws ERR_IPAM_STORE
 */
export function damagedNotes(dataDir: string): { readonly name: string; readonly path: string }[] {
  return journaledNetworks(dataDir).flatMap((network) => {
    const journal = new Journal(join(dataDir, network));
    return journal.damaged().flatMap((name) => {
      const path = journal.fileOf(name);
      return path === undefined ? [] : [{ name, path }];
    });
  });
}
