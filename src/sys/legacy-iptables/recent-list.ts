import { readFileSync } from 'node:fs';
import { type IpAddress, ifPresent, tryParseIp } from '../../core/index.ts';

/** Whom a list of iptables' match `recent` has seen. */
export interface RecentSource {
  readonly ip: IpAddress;
  /** In ticks of the kernel, whose length it does not tell. */
  readonly lastSeen: number;
}

/** Of the network namespace this thread is in. */
const FOLDER = '/proc/thread-self/net/xt_recent';

/**
 * A list of iptables' match `recent`, as long as it is.
 *
 * @returns undefined: there is none, or it is no name of a file
 */
export function readRecentList(name: string): RecentSource[] | undefined {
  if (name.includes('/')) return undefined;
  return ifPresent(() => parseRecentList(readFileSync(`${FOLDER}/${name}`, 'utf8')));
}

/**
 * As the kernel prints a list (recent_seq_show, net/netfilter/xt_recent.c):
 * `src=10.244.1.7 ttl: 64 last_seen: 4302… oldest_pkt: 1 …`. Exported for tests.
 */
export function parseRecentList(text: string): RecentSource[] {
  return [...text.matchAll(/^src=(\S+) .*last_seen: (\d+)/gm)].flatMap(([, source = '', seen]) => {
    const ip = tryParseIp(source);
    return ip ? { ip, lastSeen: Number(seen) } : [];
  });
}
