import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatIp } from '../../core/index.ts';
import { type Netlink, withNetlink } from '../../netlink/index.ts';
import { getNetnsId, type Link, listAddresses, listLinks } from '../../netlink/route/index.ts';
import { NETLINK_ROUTE, RT_SCOPE_UNIVERSE } from '../../netlink/uapi/index.ts';
import { inNetns, type NetnsHandle, netnsIdentity, openNetns } from '../../sys/index.ts';

/** A network namespace of this machine other than ours: a pod's, most often. */
export interface OtherNamespace {
  readonly path: string;
  /** The number it has here, where a link leads to it. */
  readonly id: number | undefined;
  /** Its addresses others can reach, and the link each is on. */
  readonly addresses: readonly { readonly ip: string; readonly link: Link }[];
}

/** Where container runtimes, and Docker, give namespaces names. */
const FOLDERS = ['/run/netns', '/run/docker/netns'];

/** A node has a few hundred pods at most. */
const MOST_NAMESPACES = 1024;

/**
 * The namespaces that links of ours lead to, as far as they can be seen from here: those with a name, else, as in a container with the host's processes, those of
 * processes. What vanishes meanwhile is left out. Needs CAP_SYS_ADMIN.
 */
export function otherNamespaces(netlink: Netlink): readonly OtherNamespace[] {
  const found = new Map<string, string>();
  for (const path of candidates()) {
    const identity = attempt(() => netnsIdentity(path));
    if (identity !== undefined && !found.has(identity)) found.set(identity, path);
    if (found.size > MOST_NAMESPACES) break;
  }
  found.delete(netnsIdentity('/proc/thread-self/ns/net'));
  return [...found.values()].flatMap((path) => attempt(() => look(path, netlink)) ?? []);
}

function look(path: string, netlink: Netlink): OtherNamespace | undefined {
  const handle = openNetns(path);
  try {
    const id = getNetnsId(netlink, handle.fd);
    // No pod of ours: another machine's worth of namespaces may be here.
    return id === undefined ? undefined : { path, id, addresses: addressesIn(handle) };
  } finally {
    handle.close();
  }
}

function addressesIn(handle: NetnsHandle): OtherNamespace['addresses'] {
  return inNetns(handle, () =>
    withNetlink(NETLINK_ROUTE, (socket) => {
      const links = new Map(listLinks(socket).map((link) => [link.index, link]));
      return listAddresses(socket).flatMap(({ address, scope, index }) => {
        const link = links.get(index);
        return link && scope === RT_SCOPE_UNIVERSE ? [{ ip: formatIp(address), link }] : [];
      });
    }),
  );
}

function* candidates(): Generator<string> {
  let named = 0;
  for (const folder of FOLDERS) {
    for (const name of attempt(() => readdirSync(folder)) ?? []) {
      named++;
      yield join(folder, name);
    }
  }
  if (named > 0) return;
  for (const name of readdirSync('/proc')) if (/^\d+$/.test(name)) yield `/proc/${name}/ns/net`;
}

/** Whether rules of the legacy x_tables are in a namespace: `/proc/net/ip_tables_names` lists their tables. */
export function legacyTablesIn(path: string | undefined, family: 'IPv4' | 'IPv6'): readonly string[] {
  const file = `/proc/thread-self/net/${family === 'IPv4' ? 'ip' : 'ip6'}_tables_names`;
  const read = () => (attempt(() => readFileSync(file, 'utf8')) ?? '').split('\n').filter(Boolean);
  return path === undefined ? read() : (attempt(() => inNetns(path, read)) ?? []);
}

function attempt<T>(fn: () => T): T | undefined {
  try {
    return fn();
  } catch {
    return undefined;
  }
}
