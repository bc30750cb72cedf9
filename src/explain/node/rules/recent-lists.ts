import { existsSync, readFileSync } from 'node:fs';
import { formatIp, ipFromBytes, parseIp } from '../../../core/index.ts';
import type { Facts } from '../../iptables/index.ts';

/** Of the network namespace this thread is in. */
const FOLDER = '/proc/thread-self/net/xt_recent';

/** The lists of `-m recent` in the kernel, each read once. How long ago it saw an address it counts in ticks whose length it does not tell. */
export function recentListsHere(): Required<Pick<Facts, 'recent'>>['recent'] {
  const lists = new Map<string, ReadonlySet<string> | undefined>();
  return (name, address) => {
    if (!address.isKnown) return undefined;
    if (!lists.has(name)) lists.set(name, readList(name));
    const list = lists.get(name);
    return list && (list.has(formatIp(ipFromBytes(address.bytes))) ? 'seen' : 'never');
  };
}

/** Undefined: there is none, or no name of a file. */
function readList(name: string): ReadonlySet<string> | undefined {
  const file = `${FOLDER}/${name}`;
  return name.includes('/') || !existsSync(file) ? undefined : parseRecent(readFileSync(file, 'utf8'));
}

/** The addresses in a list as the kernel prints it (recent_seq_show, net/netfilter/xt_recent.c). Exported for tests. */
export function parseRecent(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/^src=(\S+) /gm)].map(([, address]) => formatIp(parseIp(address!))));
}
