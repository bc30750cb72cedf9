import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { withNetlink } from '../../../netlink/index.ts';
import { listAddresses } from '../../../netlink/route/index.ts';
import { NETLINK_ROUTE, RT_SCOPE_UNIVERSE } from '../../../netlink/uapi/index.ts';
import { inNetns, netnsIdentity } from '../../../sys/index.ts';
import type { AddressInUse } from './check-addresses.ts';

/** Where namespaces have names: those of container runtimes, and of Docker. */
const FOLDERS = ['/run/netns', '/run/docker/netns'];

/**
 * The addresses of all network namespaces that can be seen from here but the calling thread's own; undefined: no other is seen,
 * as in a container that has neither /run/netns nor the processes of the host. What vanishes meanwhile is left out.
 */
export function addressesInNamespaces(): AddressInUse[] | undefined {
  const paths = new Map<string, string>();
  for (const path of candidates()) {
    const identity = attempt(() => netnsIdentity(path));
    if (identity !== undefined && !paths.has(identity)) paths.set(identity, path);
  }
  paths.delete(netnsIdentity('/proc/thread-self/ns/net'));
  if (paths.size === 0) return undefined;
  return [...paths.values()].flatMap((netns) => {
    const addresses = attempt(() =>
      inNetns(netns, () => withNetlink(NETLINK_ROUTE, (socket) => listAddresses(socket))),
    );
    const global = (addresses ?? []).filter(({ scope }) => scope === RT_SCOPE_UNIVERSE);
    return global.map(({ address }) => ({ address, netns }));
  });
}

function* candidates(): Generator<string> {
  for (const folder of FOLDERS) for (const name of attempt(() => readdirSync(folder)) ?? []) yield join(folder, name);
  for (const name of readdirSync('/proc')) if (/^\d+$/.test(name)) yield `/proc/${name}/ns/net`;
}

function attempt<T>(fn: () => T): T | undefined {
  try {
    return fn();
  } catch {
    return undefined;
  }
}
