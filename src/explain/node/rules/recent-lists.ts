import { formatIp, ipFromBytes } from '../../../core/index.ts';
import { readRecentList } from '../../../sys/index.ts';
import type { Facts } from '../../iptables/index.ts';

/**
 * The lists of `-m recent` in the kernel, each read once. How long ago it saw an address it counts in ticks whose
 * length it does not tell.
 */
export function recentListsHere(): Required<Pick<Facts, 'recent'>>['recent'] {
  const lists = new Map<string, ReadonlySet<string> | undefined>();
  return (name, address) => {
    if (!address.isKnown) return undefined;
    if (!lists.has(name)) lists.set(name, addressesOf(name));
    const list = lists.get(name);
    return list && (list.has(formatIp(ipFromBytes(address.bytes))) ? 'seen' : 'never');
  };
}

function addressesOf(name: string): ReadonlySet<string> | undefined {
  const sources = readRecentList(name);
  return sources && new Set(sources.map(({ ip }) => formatIp(ip)));
}
