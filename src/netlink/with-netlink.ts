import { yielder } from '../core/index.ts';
import type { NetlinkRequest } from './message.ts';
import { Netlink } from './netlink.ts';

/**
 * Runs `fn` with a conversation over a socket of its own, in the namespace of the calling thread (`inNetns` for another), which
 * is closed afterwards, whatever happens: when `fn` returns, or when the promise that it returns is settled.
 *
 * @param protocol NETLINK_ROUTE, NETLINK_NETFILTER or NETLINK_GENERIC
 * @returns what `fn` does
 * @throws ERR_NETLINK_SOCKET when the socket cannot be opened; what `fn` throws
 */
export function withNetlink<T>(protocol: number, fn: (netlink: Netlink) => T): T {
  return closing(Netlink.open(protocol), fn);
}

/**
 * Makes something of several resources, all or none of which stay open: when one cannot be opened, those before it are closed.
 *
 * @param make hands each resource to `keep`, which returns it, as soon as it is open
 */
export function openTogether<T>(make: (keep: <R extends { close(): void }>(resource: R) => R) => T): T {
  const opened: { close(): void }[] = [];
  try {
    return make((resource) => {
      opened.push(resource);
      return resource;
    });
  } catch (error) {
    for (const resource of opened) resource.close();
    throw error;
  }
}

/** Runs `fn` with something that is closed afterwards, as `withNetlink`. */
export function closing<R extends { close(): void }, T>(resource: R, fn: (resource: R) => T): T {
  let result: T;
  try {
    result = fn(resource);
  } catch (error) {
    resource.close();
    throw error;
  }
  if (result instanceof Promise) return result.finally(() => resource.close()) as T;
  resource.close();
  return result;
}

/**
 * Reads a listing of any length without holding up the event loop. Until it is done nothing else may be asked of `netlink`.
 *
 * @param decode undefined: the message is left out
 * @throws what `Netlink.dumpAsync` and `decode` throw
 */
export async function listInSlices<T>(
  netlink: Netlink,
  request: NetlinkRequest,
  decode: (payload: Uint8Array) => T | undefined,
): Promise<T[]> {
  const rest = yielder();
  const objects: T[] = [];
  for (const payload of await netlink.dumpAsync(request, async () => rest())) {
    const object = decode(payload);
    if (object !== undefined) objects.push(object);
    const wait = rest();
    if (wait) await wait;
  }
  return objects;
}
