import type { MessageWords } from '../debug.ts';
import type { NetlinkMessage } from '../message.ts';
import * as rtnetlink from '../uapi/rtnetlink.ts';

const NAMES = new Map<number, string>(
  Object.entries(rtnetlink).flatMap(([name, value]) =>
    /^RTM_(NEW|DEL|GET|SET)/.test(name) && typeof value === 'number' ? [[value, name] as const] : [],
  ),
);

/** The name of a message of NETLINK_ROUTE; undefined for one that this program does not know. */
export function routeWords({ type }: NetlinkMessage): MessageWords | undefined {
  const name = NAMES.get(type);
  return name === undefined ? undefined : { name, lines: [] };
}
