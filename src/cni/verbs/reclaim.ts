import { errorText } from '../../core/index.ts';
import { type Collected, collectGone, type JournalEntry, type StoreLocation } from '../../ipam/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { deleteIfPresent, findHostLink, linkFinder } from '../link/host-link.ts';
import { keyOfEntry } from '../protocol/attachment-key.ts';
import { leavePod, loadForTearDown, tearDown } from './tear-down.ts';

/**
 * Takes away what pods of a network left that are gone without a DEL: the link of a killed ADD, what features made, then
 * addresses. Addresses that another plugin manages are left alone.
 *
 * @param warn takes what could not be removed and stays for another try
 * @throws ERR_IPAM_STORE, ERR_LOCK_TIMEOUT
 */
export async function reclaim(
  location: StoreLocation,
  host: Netlink,
  warn: (message: string) => void,
): Promise<Collected[]> {
  const features = await loadForTearDown(undefined);
  const remove = (entry: JournalEntry): boolean => {
    const key = keyOfEntry(location.network, entry);
    try {
      const recorded = features.filter(({ name }) => entry.features.includes(name));
      const link = findHostLink(host, key);
      if (link) {
        leavePod(recorded, { key, host, pod: undefined });
        deleteIfPresent(host, link.index);
      }
      tearDown(recorded, { key, host, addresses: entry.addresses, warn });
      return true;
    } catch (error) {
      warn(`Cannot remove what is left of "${key.alias}": ${errorText(error)}`);
      return false;
    }
  };
  return collectGone(location, { hasLink: linkFinder(host), remove });
}
